package brokertest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed scripts/build-root.sh
var buildRootScript string

// suites tells which release of Debian has which series of RabbitMQ. A suite that is not released yet moves
// on in time; ensureRoot notices.
var suites = map[string]string{
	"3.10": "bookworm",
	"4.0":  "trixie",
	"4.3":  "forky",
}

// ensureRoot returns a directory tree with this series of RabbitMQ in it. It is built on first use, by one
// process at a time, and appears under its name when it is complete.
func ensureRoot(ctx context.Context, series string, progress io.Writer) (string, error) {
	suite, ok := suites[series]
	if !ok {
		return "", fmt.Errorf("this machine has neither that series installed nor a Docker engine, and no Debian "+
			"release that this package knows has it (they have %s): start a Docker engine", knownSeries())
	}
	if os.Geteuid() != 0 {
		return "", errors.New("running it from a directory tree needs root: run as root, start a Docker engine, or install that series")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	root := rootOf(cache, series)
	base := filepath.Dir(root)
	if complete(root) {
		return root, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	unlock, err := lockFile(ctx, filepath.Join(base, series+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(root) { // another process built it while this one waited
		return root, nil
	}
	if err := buildRoot(ctx, suite, series, root, progress); err != nil {
		return "", err
	}
	return root, nil
}

// rootOf is where the tree of a series is, in the user's cache directory.
func rootOf(cache, series string) string { return filepath.Join(cache, "redeliver", "brokers", series) }

// stampName is the file in a tree that holds the script which built it.
const stampName = ".built-by"

// complete tells whether there is a tree that this version of the script built.
func complete(root string) bool {
	stamp, err := os.ReadFile(filepath.Join(root, stampName))
	return err == nil && string(stamp) == buildRootScript
}

// buildRoot builds the tree beside its final place and renames it when done. Its caller holds the lock, so
// what an earlier build left there is nobody's.
func buildRoot(ctx context.Context, suite, series, root string, progress io.Writer) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if err := aptInstall(ctx, progress, "debootstrap"); err != nil {
			return fmt.Errorf("debootstrap is needed: %w", err)
		}
	}
	building := root + ".building"
	if err := os.RemoveAll(building); err != nil {
		return fmt.Errorf("removing what an earlier build left: %w", err)
	}
	fmt.Fprintf(progress, "building %s from Debian %s (once; a minute or two)\n", root, suite)
	line := []string{"/usr/bin/unshare", "--mount", "/bin/sh", "-c", buildRootScript, "build-root", suite, building}
	err := runScript(ctx, progress, line)
	if err == nil {
		if got := serverVersionIn(building); !inSeries(got, series) {
			err = fmt.Errorf("the Debian suite %s has RabbitMQ %q now, not %s: start a Docker engine to test with %s, "+
				"or change the series in internal/brokertest/root.go", suite, got, series, series)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(building, stampName), []byte(buildRootScript), 0o644)
	}
	if err == nil {
		err = os.RemoveAll(root) // one that another version of the script built
	}
	if err == nil {
		err = os.Rename(building, root)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("building %s from Debian %s: %w", root, suite, err), os.RemoveAll(building))
	}
	return nil
}

// lockInterval is the pause between two tries to get a lock that another process holds while it builds.
const lockInterval = 250 * time.Millisecond

// lockFile waits for an exclusive lock that ends with this process at the latest.
func lockFile(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another process that builds (lock %s): %w", name, ctx.Err()), f.Close())
		case <-ticker.C:
		}
	}
}

// knownSeries lists the keys of suites for messages.
func knownSeries() string {
	names := make([]string, 0, len(suites))
	for name := range suites {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
