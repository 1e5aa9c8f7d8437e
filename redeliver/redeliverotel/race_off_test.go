//go:build !race

package redeliverotel_test

const raceDetector = false
