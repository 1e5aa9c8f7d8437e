package topology

import (
	"fmt"
	"strings"
	"unicode"
)

// mermaidShapes are what stands before and after a label.
var mermaidShapes = map[nodeShape][2]string{
	shapeQueue:    {"[", "]"},
	shapeExchange: {"{{", "}}"},
	shapeRound:    {"([", "])"},
}

// Mermaid writes the picture as a Mermaid flowchart.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	classes := map[string][]string{}
	for _, n := range g.nodes {
		lines := n.lines()
		for i, line := range lines {
			lines[i] = escapeMermaid(line)
		}
		shape := mermaidShapes[n.shape]
		fmt.Fprintf(&b, "  %s%s\"%s\"%s\n", n.id, shape[0], strings.Join(lines, "<br/>"), shape[1])
		classes[n.class] = append(classes[n.class], n.id)
	}
	for _, e := range g.edges {
		if e.label == "" {
			fmt.Fprintf(&b, "  %s --> %s\n", e.from, e.to)
		} else {
			fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", e.from, escapeMermaid(e.label), e.to)
		}
	}
	for _, s := range graphStyles {
		if ids := classes[s.class]; len(ids) > 0 {
			style := "fill:" + s.fill + ",stroke:" + s.stroke + ",color:" + graphText
			if s.dashes != "" {
				style += ",stroke-dasharray:" + s.dashes
			}
			fmt.Fprintf(&b, "  classDef %s %s\n  class %s %s\n", s.class, style, strings.Join(ids, ","), s.class)
		}
	}
	return b.String()
}

// escapeMermaid writes text so that Mermaid shows it as it is: everything but
// letters, digits and a few harmless characters becomes an entity code. Control
// characters are shown as their pictures.
func escapeMermaid(text string) string {
	var b strings.Builder
	for _, r := range text {
		if picture, control := controlPicture(r); control {
			b.WriteRune(picture)
			continue
		}
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .,-_=", r)):
			b.WriteRune(r)
		case r >= 0x80 && unicode.IsPrint(r) && r != unicode.ReplacementChar:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
