//go:build race

package redeliverotel_test

// raceDetector: under it a sync.Pool forgets some of what it is given.
const raceDetector = true
