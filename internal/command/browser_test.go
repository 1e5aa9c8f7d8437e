package command_test

import (
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
)

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
