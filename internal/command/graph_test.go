package command_test

import (
	"encoding/xml"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestGraphsSayTheSame: the three languages say the same words, the Mermaid form is what Mermaid can read, and in the SVG
// form every word can be read: in its node, and not over another.
func TestGraphsSayTheSame(t *testing.T) {
	for name, change := range map[string]func(*topology.Spec){
		"hybrid": func(*topology.Spec) {},
		"bound": func(s *topology.Spec) {
			s.Bindings = []topology.Binding{{Source: "shop.events", RoutingKey: "order.*"}, {Source: "a \"b\" [c] | <d> & #1;", RoutingKey: "e\\f"}}
			s.HoldDelays = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
		},
		"in place": func(s *topology.Spec) {
			s.HoldDelays, s.Retry = nil, topology.RetryPolicy{Strategy: topology.InPlace, MaxRetries: 3, Delays: []time.Duration{time.Second}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := offline(t)
			b.manifest(b.spec(change))
			words := wordsOfDOT(b.run("graph", "--format", "dot", "orders.json").exits(0).out)
			if got := wordsOfMermaid(t, b.run("graph", "orders.json").exits(0).out); !slices.Equal(got, words) {
				t.Errorf("Mermaid says\n%q, and DOT\n%q", got, words)
			}
			boxes := boxesOf(t, b.run("graph", "--format", "svg", "orders.json").exits(0).out)
			var got []string
			for _, drawn := range boxes {
				if drawn.Text != "" {
					got = append(got, drawn.Text)
				}
			}
			if slices.Sort(got); !slices.Equal(got, words) {
				t.Errorf("SVG says\n%q, and DOT\n%q", got, words)
			}
			checkBoxes(t, boxes)
		})
	}
}

// wordsOfDOT are the lines of all labels, sorted.
func wordsOfDOT(dot string) []string {
	var out []string
	for _, label := range regexp.MustCompile(`label="((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(dot, -1) {
		line := ""
		for at := 0; at < len(label[1]); at++ {
			switch c := label[1][at]; {
			case c != '\\':
				line += label[1][at : at+1]
			case label[1][at+1] == 'n', label[1][at+1] == 'l':
				out, line = append(out, line), ""
				at++
			default:
				at++
				line += label[1][at : at+1]
			}
		}
		if line != "" {
			out = append(out, line)
		}
	}
	for i := range out {
		out[i] = html.UnescapeString(out[i])
	}
	slices.Sort(out)
	return out
}

// What the lines of a flowchart may be. In a text everything that may mean something to Mermaid is a number.
const mermaidText = `"((?:[A-Za-z0-9 .,_=-]|#\d+;|<br/>|[^\x00-\x7f])+)"`

var (
	mermaidNode  = regexp.MustCompile(`^  (n\d+)(?:\[` + mermaidText + `\]|\(\[` + mermaidText + `\]\)|\{\{` + mermaidText + `\}\})$`)
	mermaidEdge  = regexp.MustCompile(`^  (n\d+) -->(?:\|` + mermaidText + `\|)? (n\d+)$`)
	mermaidStyle = regexp.MustCompile(`^  classDef ([a-z]+) fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}(?:,stroke-dasharray:[0-9 ]+)?$`)
	mermaidClass = regexp.MustCompile(`^  class (n\d+(?:,n\d+)*) ([a-z]+)$`)
	mermaidCode  = regexp.MustCompile(`#(\d+);`)
)

// wordsOfMermaid reads a flowchart strictly, and returns the lines of all its labels, sorted.
func wordsOfMermaid(t *testing.T, text string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != "flowchart LR" {
		t.Errorf("it begins with %q", lines[0])
	}
	nodes, styles, drawn := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var out []string
	say := func(label string) {
		for line := range strings.SplitSeq(label, "<br/>") {
			out = append(out, mermaidCode.ReplaceAllStringFunc(line, func(code string) string {
				n, err := strconv.Atoi(code[1 : len(code)-1])
				if err != nil {
					t.Error(err)
				}
				return string(rune(n))
			}))
		}
	}
	for _, line := range lines[1:] {
		if m := mermaidNode.FindStringSubmatch(line); m != nil {
			if nodes[m[1]] {
				t.Errorf("it is there twice: %q", line)
			}
			nodes[m[1]] = true
			say(m[2] + m[3] + m[4])
		} else if m := mermaidEdge.FindStringSubmatch(line); m != nil {
			if !nodes[m[1]] || !nodes[m[3]] {
				t.Errorf("it leads from or to what is not there: %q", line)
			}
			if m[2] != "" {
				say(m[2])
			}
		} else if m := mermaidStyle.FindStringSubmatch(line); m != nil {
			styles[m[1]] = true
		} else if m := mermaidClass.FindStringSubmatch(line); m != nil && styles[m[2]] {
			for node := range strings.SplitSeq(m[1], ",") {
				drawn[node] = nodes[node]
			}
		} else {
			t.Errorf("Mermaid cannot read %q", line)
		}
	}
	for node := range nodes {
		if !drawn[node] {
			t.Errorf("node %s has no style", node)
		}
	}
	slices.Sort(out)
	return out
}

// box is where a part of a picture is, which is a text or a shape of a node or an edge.
type box struct {
	Of                  string
	Node                bool
	Text                string
	X, Y, Width, Height float64
}

// boxSlack is how far boxes may be into each other: what is drawn is rounded.
const boxSlack = 1

func (b box) overlaps(o box) bool {
	return b.X+boxSlack < o.X+o.Width && o.X+boxSlack < b.X+b.Width && b.Y+boxSlack < o.Y+o.Height && o.Y+boxSlack < b.Y+b.Height
}

func (b box) holds(o box) bool {
	return b.X <= o.X+boxSlack && o.X+o.Width <= b.X+b.Width+boxSlack && b.Y <= o.Y+boxSlack && o.Y+o.Height <= b.Y+b.Height+boxSlack
}

// checkBoxes holds every text of a node in it, and lets no text be over another, or over another node.
func checkBoxes(t *testing.T, boxes []box) {
	t.Helper()
	texts := 0
	for i, a := range boxes {
		if a.Text != "" {
			texts++
		}
		if a.Text != "" && a.Node && !slices.ContainsFunc(boxes, func(b box) bool { return b.Of == a.Of && b.Text == "" && b.holds(a) }) {
			t.Errorf("the text is not in its node: %+v", a)
		}
		for _, b := range boxes[i+1:] {
			shape := a.Text == "" || b.Text == ""
			switch {
			case shape && (a.Of == b.Of || a.Text == "" && !a.Node || b.Text == "" && !b.Node): // a text in its node, or an edge, which crosses much
			case a.overlaps(b):
				t.Errorf("one is over the other:\n%+v\n%+v", a, b)
			}
		}
	}
	if texts == 0 {
		t.Error("there are no texts")
	}
}

// The parts of an SVG picture that Graphviz draws.
type svgGroup struct {
	ID       string     `xml:"id,attr"`
	Class    string     `xml:"class,attr"`
	Groups   []svgGroup `xml:"g"`
	Polygons []struct {
		Points string `xml:"points,attr"`
	} `xml:"polygon"`
	Paths []struct {
		D string `xml:"d,attr"`
	} `xml:"path"`
	Texts []struct {
		X      float64 `xml:"x,attr"`
		Y      float64 `xml:"y,attr"`
		Anchor string  `xml:"text-anchor,attr"`
		Size   float64 `xml:"font-size,attr"`
		Text   string  `xml:",chardata"`
	} `xml:"text"`
}

// Courier's measures, in parts of its size: every character is as wide.
const courierWidth, courierAscent, courierDescent = 0.6, 0.8, 0.2

// boxesOf measures a picture by what it says itself.
func boxesOf(t *testing.T, svg string) []box {
	t.Helper()
	var picture svgGroup
	if err := xml.Unmarshal([]byte(svg), &picture); err != nil {
		t.Fatal(err)
	}
	if len(picture.Groups) != 1 {
		t.Fatalf("%d pictures", len(picture.Groups))
	}
	var out []box
	for _, g := range picture.Groups[0].Groups {
		node := g.Class == "node"
		var shapes []string
		for _, p := range g.Polygons {
			shapes = append(shapes, p.Points)
		}
		for _, p := range g.Paths {
			shapes = append(shapes, p.D)
		}
		for _, points := range shapes {
			out = append(out, around(t, box{Of: g.ID, Node: node}, points))
		}
		for _, text := range g.Texts {
			words := strings.ReplaceAll(text.Text, "\u00a0", " ")
			width := float64(len([]rune(words))) * courierWidth * text.Size
			x := text.X
			if text.Anchor == "middle" {
				x -= width / 2
			}
			out = append(out, box{g.ID, node, words, x, text.Y - courierAscent*text.Size, width, (courierAscent + courierDescent) * text.Size})
		}
	}
	return out
}

var svgPoint = regexp.MustCompile(`(-?[0-9.]+),(-?[0-9.]+)`)

// around is the box around points.
func around(t *testing.T, of box, points string) box {
	t.Helper()
	var xs, ys []float64
	for _, p := range svgPoint.FindAllStringSubmatch(points, -1) {
		xs, ys = append(xs, must(strconv.ParseFloat(p[1], 64))(t)), append(ys, must(strconv.ParseFloat(p[2], 64))(t))
	}
	if len(xs) == 0 {
		t.Fatalf("there are no points in %q", points)
	}
	of.X, of.Y = slices.Min(xs), slices.Min(ys)
	of.Width, of.Height = slices.Max(xs)-of.X, slices.Max(ys)-of.Y
	return of
}
