package redeliver

import (
	"errors"
	"fmt"
	"os"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Manifest is the document that a topic resource computes (its attribute
// "manifest") and that a consumer binds to: which queue, what is retried after
// which delays, where messages go that failed for good. It is read with
// [LoadManifest], [ManifestFromEnv] or [ParseManifest], which validate it.
//
// It holds no secrets. The zero value is no manifest and is refused.
type Manifest struct {
	text []byte
	doc  topology.Manifest
}

// ParseManifest reads a manifest. A manifest of a version that is newer than
// this library, a field it does not know, and one whose names or arguments were
// edited by hand are refused. (The retry policy is no part of the fingerprint.)
func ParseManifest(text []byte) (Manifest, error) {
	doc, err := topology.DecodeManifest(text)
	if err != nil {
		return Manifest{}, err
	}
	return Manifest{text: append([]byte(nil), text...), doc: doc}, nil
}

// LoadManifest reads the manifest in a file.
func LoadManifest(path string) (Manifest, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest: %w; write the topic resource's manifest attribute to it", err)
	}
	m, err := ParseManifest(text)
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest in %s: %w", path, err)
	}
	return m, nil
}

// ManifestFromEnv reads the manifest that is the value of an environment
// variable.
func ManifestFromEnv(name string) (Manifest, error) {
	text, ok := os.LookupEnv(name)
	if !ok {
		return Manifest{}, fmt.Errorf("reading the manifest: the environment variable %s is not set; set it to the topic resource's manifest attribute", name)
	}
	m, err := ParseManifest([]byte(text))
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest in the environment variable %s: %w", name, err)
	}
	return m, nil
}

// Topic is the topic's name.
func (m Manifest) Topic() string { return m.doc.Topic }

// VHost is the virtual host that holds the topology.
func (m Manifest) VHost() string { return m.doc.VHost }

// WorkQueue is the name of the queue that is consumed.
func (m Manifest) WorkQueue() string { return m.doc.WorkQueue.Name }

// Bytes is the manifest's text as it was read.
func (m Manifest) Bytes() []byte { return append([]byte(nil), m.text...) }

// Contract is what the manifest says, for the other packages of this module: its
// type is internal, and may change in any release. It is not to be modified.
func (m Manifest) Contract() topology.Manifest { return m.doc }

// ErrNoManifest is returned where a zero [Manifest] was used.
var ErrNoManifest = errors.New("there is no manifest: read one with redeliver.LoadManifest, ManifestFromEnv or ParseManifest")
