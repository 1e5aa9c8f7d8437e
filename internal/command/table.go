package command

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

func cells(texts ...string) []cell {
	out := make([]cell, len(texts))
	for i, text := range texts {
		out[i] = cell{text: text}
	}
	return out
}

// table is printed with its columns aligned. right are the columns of numbers. A dense one is printed without the columns
// that no row has anything in.
type table struct {
	indent string
	head   []string
	rows   [][]cell
	right  map[int]bool
	dense  bool
}

func (t *table) add(row ...cell) { t.rows = append(t.rows, row) }

// render writes the table, each line with its end.
func (t *table) render(a *app) string {
	rows := t.rows
	empty := make([]bool, len(t.head))
	for i := range empty {
		empty[i] = t.dense && !slices.ContainsFunc(t.rows, func(row []cell) bool { return i < len(row) && row[i].text != "" })
	}
	if len(t.head) > 0 {
		head := cells(t.head...)
		for i := range head {
			head[i].style = bold
		}
		rows = append([][]cell{head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := t.indent
		for i, c := range row {
			if i < len(empty) && empty[i] {
				continue
			}
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if t.right[i] {
				line += space + a.styled(c.style, c.text)
			} else {
				line += a.styled(c.style, c.text) + space
			}
			line += "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// shown writes a text of somebody else's on one line of a terminal: what is no printable character, which may be a
// terminal's command, is shown by its picture or number.
func shown(text string) string {
	printable := true
	for _, r := range text {
		printable = printable && unicode.IsPrint(r) && r != utf8.RuneError
	}
	if printable {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x20:
			b.WriteRune('\u2400' + r)
		case r == 0x7f:
			b.WriteRune('\u2421')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune('\ufffd')
		}
	}
	return b.String()
}
