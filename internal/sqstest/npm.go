package sqstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// stampFile is what scripts/npm-install.sh leaves below npm/: the lock file that was installed.
const stampFile = "node_modules/.installed"

// Install installs the emulators where that was not done yet. Only one process does at a time.
func Install(ctx context.Context) error {
	if installed() == nil {
		return nil
	}
	dir, err := npmDir()
	if err != nil {
		return err
	}
	script := filepath.Join(dir, "..", "..", "..", "scripts", "npm-install.sh")
	if out, err := exec.CommandContext(ctx, script).CombinedOutput(); err != nil {
		return fmt.Errorf("installing the SQS emulators: %s: %w\n%s", script, err, out)
	}
	return nil
}

// installed says what is missing.
func installed() error {
	dir, err := npmDir()
	if err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	have, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(stampFile)))
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return errors.New("another version of the packages is installed")
	}
	return nil
}

// npmDir finds npm/ of this package from the working directory, which for a test is its package's.
func npmDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if npm := filepath.Join(at, "internal", "sqstest", "npm"); exists(filepath.Join(npm, "package.json")) {
			return npm, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("looking for the SQS emulators: no internal/sqstest/npm above %s", dir)
		}
	}
}
