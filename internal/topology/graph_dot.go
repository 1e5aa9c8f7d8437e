package topology

import (
	"fmt"
	"strings"
	"unicode"
)

// dotShapes are the names of Graphviz's shapes, with the style that goes with each.
var dotShapes = map[nodeShape][2]string{
	shapeQueue:    {"box", "filled"},
	shapeExchange: {"hexagon", "filled"},
	shapeRound:    {"box", "filled,rounded"},
}

// DOT writes the picture in the language of Graphviz. Its font is one whose characters are all as wide, in whatever font a
// browser has in its place: so no text is wider than its box.
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph redeliver {\n  rankdir=LR\n  nodesep=0.4\n  ranksep=0.9\n  node [fontname=\"Courier\" fontsize=10 fontcolor=\"" + graphText + "\"]\n" +
		"  edge [fontname=\"Courier\" fontsize=9 color=\"#4b5563\" fontcolor=\"" + graphText + "\"]\n")
	for _, n := range g.nodes {
		style := graphStyles[0]
		for _, s := range graphStyles {
			if s.class == n.class {
				style = s
			}
		}
		shape := dotShapes[n.shape]
		look := shape[1]
		if style.dashes != "" {
			look += ",dashed"
		}
		fmt.Fprintf(&b, "  %s [label=\"%s\" shape=%s style=\"%s\" fillcolor=\"%s\" color=\"%s\"]\n", n.id, dotLabel(n), shape[0], look, style.fill, style.stroke)
	}
	for _, e := range g.edges {
		if e.label == "" {
			fmt.Fprintf(&b, "  %s -> %s\n", e.from, e.to)
		} else {
			fmt.Fprintf(&b, "  %s -> %s [label=\"%s\"]\n", e.from, e.to, escapeDOT(e.label))
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// dotLabel has what a node is in the middle, and its details on the left.
func dotLabel(n graphNode) string {
	var b strings.Builder
	details := len(n.lines()) - len(n.details)
	for i, line := range n.lines() {
		b.WriteString(escapeDOT(line))
		switch {
		case i >= details:
			b.WriteString(`\l`)
		case i < len(n.lines())-1:
			b.WriteString(`\n`)
		}
	}
	return b.String()
}

// escapeDOT writes text so that Graphviz shows it as it is, in a quoted label: there a backslash begins an escape, and an
// ampersand an entity. Control characters are shown as their pictures, and what cannot be printed by its number.
func escapeDOT(text string) string {
	var b strings.Builder
	for _, r := range text {
		if picture, control := controlPicture(r); control {
			b.WriteRune(picture)
			continue
		}
		switch {
		case r == '"', r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '&':
			b.WriteString("&amp;")
		case unicode.IsPrint(r) && r != unicode.ReplacementChar:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "U+%04X", r)
		}
	}
	return b.String()
}
