package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Streams are where a command reads and prints.
type Streams struct{ In, Out, Err *os.File }

// What commands print.
const (
	outputTable = "table"
	outputJSON  = "json"
)

var outputs = []string{outputTable, outputJSON}

// app is one run of the command.
type app struct {
	version string
	std     Streams
	// unwritten is standard output, and why something could not be written to it.
	unwritten noting
	out, err  io.Writer
	output    string
	// understood: the command line says something that can be done.
	understood bool
	// read: standard input was read, which is possible once.
	read     bool
	coloured bool
	conn     connection
	broker   *rabbitMQ // nil until a command needs it
	regions  map[string]*amazonSQS
}

func newApp(version string, std Streams) *app {
	a := &app{version: version, std: std, out: io.Discard, err: io.Discard, regions: map[string]*amazonSQS{}}
	if std.Out != nil {
		a.out = &a.unwritten
		a.unwritten.to = std.Out
		a.coloured = isTerminal(std.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if std.Err != nil {
		a.err = std.Err
	}
	return a
}

// noting writes, and keeps the first error.
type noting struct {
	to  io.Writer
	err error
}

func (n *noting) Write(p []byte) (int, error) {
	written, err := n.to.Write(p)
	if err != nil && n.err == nil {
		n.err = err
	}
	return written, err
}

func (a *app) close() {
	if a.broker != nil {
		a.broker.close()
	}
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

func (a *app) json() bool { return a.output == outputJSON }

// printf prints a result.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// say tells people something that is no result.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

func (a *app) printJSON(value any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// confirm asks a question on the terminal. Where nobody can answer it is an error that says what to do.
func (a *app) confirm(ctx context.Context, question, otherwise string) (bool, error) {
	if !isTerminal(a.std.In) {
		return false, fmt.Errorf("standard input is no terminal, so that nobody can be asked: %s", otherwise)
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := answered(ctx, func() (string, error) { return bufio.NewReader(a.std.In).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(a.err)
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// answered waits for an answer, or until ctx is done: what reads it, or works it out, goes with the process.
func answered[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	given := make(chan answer, 1)
	go func() {
		value, err := read()
		given <- answer{value, err}
	}()
	select {
	case got := <-given:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// style is what text looks like on a terminal.
type style string

const (
	plain  style = ""
	bad    style = "31"
	warned style = "33"
	good   style = "32"
	dim    style = "2"
	bold   style = "1"
)

// styled colours text where there are colours.
func (a *app) styled(s style, text string) string {
	if !a.coloured || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// count writes a number with a comma between thousands.
func count[T int | int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// messages writes how many messages.
func messages[T int | int64](n T) string {
	return count(n) + " " + plural(n, "message", "messages")
}

// plural is the word that goes with so many.
func plural[T int | int64](n T, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// about writes a duration for people, as exact as makes sense.
func about(d time.Duration) string {
	unit := time.Second
	switch {
	case d >= 24*time.Hour:
		unit = time.Hour
	case d >= time.Hour:
		unit = time.Minute
	}
	return topology.FormatDuration(d.Truncate(unit))
}
