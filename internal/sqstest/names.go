package sqstest

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"
)

// mostOfTest is how much of a test's name a queue's name has: SQS allows 80 characters, and the names that are derived
// from a topic's need some.
const mostOfTest = 30

// UniqueName is a name for a topic or a queue that no other test has: letters, digits and hyphens, short enough for
// every name that is derived from it.
func UniqueName(t testing.TB) string {
	t.Helper()
	return uniqueName(t.Name())
}

func uniqueName(test string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, strings.TrimPrefix(test, "Test"))
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	return strings.Trim(readable[:min(len(readable), mostOfTest)], "-") + "-" + hex.EncodeToString(random[:])
}
