package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// barWidth is how long the bar of the fullest hold queue is.
const barWidth = 20

func (a *app) drawStatuses(views []statusView) string {
	var b strings.Builder
	for i, v := range views {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(a.drawStatus(v))
	}
	b.WriteString(a.drawNotes(views))
	return b.String()
}

// drawNotes says what brokers do not show, once for all topics.
func (a *app) drawNotes(views []statusView) string {
	var notes []string
	for _, v := range views {
		notes = append(notes, v.Notes...)
	}
	return a.notes(notes)
}

// notes are the lines that say what a broker shows to nobody, each once.
func (a *app) notes(texts []string) string {
	var b strings.Builder
	for i, text := range texts {
		if !slices.Contains(texts[:i], text) {
			fmt.Fprintf(&b, "%s %s\n", a.styled(dim, "note:"), shown(text))
		}
	}
	return b.String()
}

// drawStatus draws a topic: the work queue, under it the ladder, then the dead ends.
func (a *app) drawStatus(v statusView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s %s: %s\n", a.styled(bold, shown(v.Topic)), place(v.VHost), v.policy)
	t := table{indent: "  ", head: []string{"", "QUEUE", "MESSAGES", "", "HANDED OUT", "CONSUMERS", "IN/S", "OUT/S", "OLDEST"}, right: map[int]bool{2: true, 4: true, 5: true, 6: true, 7: true}}
	onSQS := v.VHost == ""
	if onSQS {
		t.head = []string{"", "QUEUE", "MESSAGES", "", "IN FLIGHT", "DELAYED"}
	}
	fullest, tiers := int64(0), 0
	for _, q := range v.Queues {
		if q.Role == topology.RoleHold {
			tiers++
			if q.Messages != nil {
				fullest = max(fullest, *q.Messages)
			}
		}
	}
	for _, q := range v.Queues {
		name := roleName(q.Role)
		bar := ""
		if q.Role == topology.RoleHold {
			tiers--
			name = "├─ " + q.Delay.String()
			if tiers == 0 {
				name = "└─ " + q.Delay.String()
			}
			if q.Messages != nil && *q.Messages > 0 {
				bar = strings.Repeat("▇", max(1, int(*q.Messages*barWidth/fullest)))
			}
		}
		if q.Missing {
			t.add(cell{text: name}, cell{text: shown(q.Name)}, cell{"missing", bad})
			continue
		}
		held := cell{text: number(q.Messages)}
		if q.Messages != nil && *q.Messages > 0 && (q.Role == topology.RoleDeadLetter || q.Role == topology.RoleParked) {
			held.style = bad
		}
		if onSQS {
			t.add(cell{text: name}, cell{text: shown(q.Name)}, held, cell{}, cell{text: number(q.Unacknowledged)}, cell{text: number(q.Delayed)})
			continue
		}
		consumers := cell{text: number(q.Consumers)}
		if q.Consumers != nil && (*q.Consumers > 0) == (q.Role == topology.RoleHold) && q.Role != topology.RoleDeadLetter && q.Role != topology.RoleParked {
			consumers.style = warned
		}
		t.add(cell{text: name}, cell{text: shown(q.Name)}, held, cell{bar, warned}, cell{text: number(q.Unacknowledged)}, consumers, cell{text: perSecond(q.In)}, cell{text: perSecond(q.Out)}, cell{text: age(q.oldest)})
	}
	b.WriteString(t.render(a))
	for _, text := range v.Needs {
		fmt.Fprintf(&b, "  %s %s\n", a.styled(bad, "!"), shown(text))
	}
	if len(v.Needs) == 0 && len(v.Unseen) == 0 {
		fmt.Fprintf(&b, "  %s\n", a.styled(good, "nothing needs a human"))
	}
	for _, text := range v.Unseen {
		fmt.Fprintf(&b, "  %s %s\n", a.styled(warned, "not seen:"), shown(text))
	}
	return b.String()
}

func perSecond(rate *float64) string {
	if rate == nil {
		return ""
	}
	return strconv.FormatFloat(*rate, 'f', 1, 64)
}

// Terminal commands: where a drawing begins, what is behind the end of a line and of the drawing goes away, and the cursor
// is hidden meanwhile.
const (
	screenHome  = "\x1b[H"
	screenClear = "\x1b[2J"
	lineRest    = "\x1b[K"
	screenRest  = "\x1b[J"
	cursorHide  = "\x1b[?25l"
	cursorShow  = "\x1b[?25h"
)

// watch draws the state again and again until it is interrupted. A broker that does not answer for a while ends nothing.
func (a *app) watch(ctx context.Context, manifests []topology.Manifest, interval time.Duration) error {
	inPlace := isTerminal(a.std.Out) && !a.json()
	if inPlace {
		a.printf("%s", cursorHide+screenClear)
		defer a.printf("%s", cursorShow)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		views, err := a.statuses(ctx, manifests)
		switch {
		case ctx.Err() != nil:
			return ended(ctx)
		case err != nil && first:
			return err
		case inPlace && err != nil:
			a.printf("%s", screenHome+a.styled(bad, "not answered: "+shown(err.Error()))+lineRest+"\r\n")
		case inPlace:
			drawing := time.Now().Format(time.TimeOnly) + "  Ctrl-C ends\n\n" + a.drawStatuses(views)
			if width, height, err := term.GetSize(int(a.std.Out.Fd())); err == nil && width > 1 && height > 0 {
				drawing = fit(drawing, width-1, height) // behind a full line, lineRest would take its last character away
			}
			a.printf("%s", screenHome+strings.ReplaceAll(drawing, "\n", lineRest+"\r\n")+screenRest)
		case err != nil:
			a.say("redeliver: %v", err)
		default:
			if !first && !a.json() {
				a.printf("\n")
			}
			if err := a.printStatuses(views); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// fit cuts a drawing to the size of a terminal, and says how many lines it hides. The last line is left to the cursor.
func fit(drawing string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(drawing, "\n"), "\n")
	if hidden := len(lines) - max(1, height-1); hidden > 0 {
		hidden++ // the line that says so takes one
		lines = append(lines[:len(lines)-hidden], fmt.Sprintf("… %d more %s: the terminal is too low", hidden, plural(hidden, "line", "lines")))
	}
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return strings.Join(lines, "\n") + "\n"
}

// cut is as much of a line as fits. The terminal's commands in it take no place.
func cut(line string, width int) string {
	if utf8.RuneCountInString(styling.ReplaceAllString(line, "")) <= width {
		return line
	}
	var b strings.Builder
	for column := 0; column < width-1; {
		if at := styling.FindStringIndex(line); at != nil && at[0] == 0 {
			b.WriteString(line[:at[1]])
			line = line[at[1]:]
			continue
		}
		_, size := utf8.DecodeRuneInString(line)
		b.WriteString(line[:size])
		line = line[size:]
		column++
	}
	b.WriteString("…")
	if strings.Contains(b.String(), "\x1b") {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// styling is what styled puts around a text.
var styling = regexp.MustCompile("\x1b\\[[0-9]*m")

// ended is no error where somebody ended the watch.
func ended(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, ErrInterrupted) {
		return err
	}
	return nil
}
