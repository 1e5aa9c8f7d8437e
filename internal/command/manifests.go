package command

import (
	"fmt"
	"io"
	"os"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// readFile reads a file that an argument names; - is standard input.
func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		if a.std.In == nil {
			return nil, nil
		}
		text, err := io.ReadAll(a.std.In)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return text, nil
}

// manifest reads one manifest.
func (a *app) manifest(name string) (topology.Manifest, error) {
	text, err := a.readFile(name)
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
func (a *app) manifests(names []string) ([]topology.Manifest, error) {
	out := make([]topology.Manifest, len(names))
	for i, name := range names {
		var err error
		if out[i], err = a.manifest(name); err != nil {
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
