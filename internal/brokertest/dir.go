package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	dirPattern = "redeliver-broker-*"
	lockName   = "owner.lock"
)

// workDir is a node's own directory under the temporary directory. Its owner holds a lock in it for as
// long as it lives, so that the directories of owners that were killed can be told and removed.
type workDir struct {
	path string
	lock *os.File
}

// newWorkDir makes a node's directory, after removing those that dead owners left behind.
func newWorkDir(ctx context.Context) (*workDir, error) {
	sweep(ctx, os.TempDir())
	path, err := os.MkdirTemp("", dirPattern)
	if err != nil {
		return nil, fmt.Errorf("making a directory for a RabbitMQ node: %w", err)
	}
	// Locked first and renamed then: a sweep in another process must not find the lock file unlocked.
	lock, err := os.Create(filepath.Join(path, lockName+".new"))
	if err == nil {
		err = errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB),
			os.Rename(lock.Name(), filepath.Join(path, lockName)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s for a RabbitMQ node: %w", path, err), os.RemoveAll(path))
	}
	return &workDir{path: path, lock: lock}, nil
}

func (d *workDir) file(name string) string { return filepath.Join(d.path, name) }

// write writes one file of the node's configuration.
func (d *workDir) write(name, content string, mode os.FileMode) error {
	if err := os.WriteFile(d.file(name), []byte(content), mode); err != nil {
		return fmt.Errorf("writing a RabbitMQ node's configuration: %w", err)
	}
	return nil
}

// remove removes the directory and gives up its lock.
func (d *workDir) remove() error {
	if err := errors.Join(os.RemoveAll(d.path), d.lock.Close()); err != nil {
		return fmt.Errorf("removing a RabbitMQ node's directory: %w", err)
	}
	return nil
}

// sweep removes what owners that did not end cleanly left in parent. It is housekeeping: what cannot be
// removed (another user's, say) stays.
func sweep(ctx context.Context, parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, dirPattern, lockName))
	if err != nil {
		return
	}
	for _, name := range locks {
		lock, err := os.Open(name)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			dir := filepath.Dir(name)
			_ = removeVolume(ctx, dir)
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
