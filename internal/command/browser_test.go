package command_test

import (
	"encoding/json"
	"html"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// measure has a page say where its picture has what, as boxes in the picture's own units.
const measure = `<pre id="boxes"></pre><script>
const boxes = [];
for (const group of document.querySelectorAll("svg g.node, svg g.edge")) {
  for (const part of group.querySelectorAll("text, polygon, path, ellipse")) {
    const { x, y, width, height } = part.getBBox();
    boxes.push({ of: group.id, node: group.classList.contains("node"), text: part.tagName == "text" ? part.textContent : "", x, y, width, height });
  }
}
document.getElementById("boxes").textContent = JSON.stringify(boxes);
</script>`

// measured are the boxes of a picture as a browser lays it out, with the fonts that it has.
func (b *bundle) measured(chromium, file string) []box {
	b.t.Helper()
	picture, err := os.ReadFile(filepath.Join(b.dir, file))
	if err != nil {
		b.t.Fatal(err)
	}
	page := file + ".html"
	b.write(page, []byte("<!DOCTYPE html><meta charset=\"utf-8\"><body>"+string(picture[strings.Index(string(picture), "<svg"):])+measure))
	cmd := exec.CommandContext(b.t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(b.dir, "profile"),
		"--dump-dom", "file://"+filepath.Join(b.dir, page))
	dom, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	_, text, _ := strings.Cut(string(dom), `<pre id="boxes">`)
	text, _, _ = strings.Cut(text, "</pre>")
	var boxes []box
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), &boxes); err != nil {
		b.t.Fatalf("the browser has measured nothing: %v in %s", err, dom)
	}
	return boxes
}

// look has a browser take a picture of a file, and checks that the colours of queues, hold queues and dead letters are in
// it: what is drawn can be seen. The picture stays where REDELIVER_TEST_PICTURES says, for people.
func (b *bundle) look(chromium, file string) {
	b.t.Helper()
	shot := filepath.Join(b.dir, "picture.png")
	cmd := exec.CommandContext(b.t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+filepath.Join(b.dir, "profile"),
		"--window-size=3000,1000", "--screenshot="+shot, "file://"+filepath.Join(b.dir, file))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("the browser: %v\n%s", err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		b.t.Fatal(err)
	}
	if keep := os.Getenv("REDELIVER_TEST_PICTURES"); keep != "" {
		content, err := os.ReadFile(shot)
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, file+".png"), content, 0o644)
		}
		if err != nil {
			b.t.Error(err)
		}
	}
	seen := map[[3]uint32]int{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y++ {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}]++
		}
	}
	for what, colour := range map[string][3]uint32{
		"a work queue": {0xdb, 0xea, 0xfe}, "hold queues": {0xfe, 0xf9, 0xc3}, "a dead-letter queue": {0xfe, 0xe2, 0xe2}, "an exchange": {0xdc, 0xfc, 0xe7},
	} {
		if seen[colour] < 1000 {
			b.t.Errorf("%s: %d pixels of its colour", what, seen[colour])
		}
	}
}
