package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// readFile reads a file that an argument names; - is standard input.
func (a *app) readFile(ctx context.Context, name string) ([]byte, error) {
	var text []byte
	var err error
	switch {
	case name != "-":
		if text, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
	case a.read:
		return nil, usagef("- names standard input, which can be read once, and it is given twice: name a file for all manifests but one")
	case a.std.In != nil:
		a.read = true
		if text, err = answered(ctx, func() ([]byte, error) { return io.ReadAll(a.std.In) }); err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
	}
	if mark := slices.IndexFunc(byteOrderMarks, func(mark string) bool { return strings.HasPrefix(string(text), mark) }); mark >= 0 {
		return nil, fmt.Errorf("reading the manifest: %s begins with a byte order mark, which JSON has not, and which consumers refuse too: write it as UTF-8 without one "+
			"(Windows PowerShell: terraform output -raw NAME | Out-File -Encoding ascii FILE, or use cmd.exe or PowerShell 7)", fileName(name))
	}
	return text, nil
}

// byteOrderMarks are those of UTF-8 and UTF-16.
var byteOrderMarks = []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"}

// manifest reads one manifest.
func (a *app) manifest(ctx context.Context, name string) (topology.Manifest, error) {
	text, err := a.readFile(ctx, name)
	if err != nil {
		return topology.Manifest{}, err
	}
	m, err := topology.DecodeManifest(text)
	if err != nil {
		return topology.Manifest{}, fmt.Errorf("%s: %w", fileName(name), err)
	}
	return m, nil
}

// manifests reads all that are named.
func (a *app) manifests(ctx context.Context, names []string) ([]topology.Manifest, error) {
	out := make([]topology.Manifest, len(names))
	for i, name := range names {
		var err error
		if out[i], err = a.manifest(ctx, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fileName is how messages call an argument.
func fileName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
