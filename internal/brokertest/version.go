package brokertest

import (
	"fmt"
	"strconv"
	"strings"
)

// HasVersion tells whether the broker's version is at least the given one, such as "4.3" or "3.12.1". It
// panics when want is not made of numbers and dots: that is a mistake in the test.
func HasVersion(b *Broker, want string) bool {
	wanted, err := parseVersion(want)
	if err != nil {
		panic("brokertest.HasVersion: " + err.Error())
	}
	have, err := parseVersion(b.Version())
	if err != nil {
		panic("brokertest.HasVersion: the broker's: " + err.Error())
	}
	for i := range wanted {
		if have[i] != wanted[i] {
			return have[i] > wanted[i]
		}
	}
	return true
}

// parseVersion reads up to three numbers. What follows "-" or "+" (a pre-release) does not count.
func parseVersion(s string) ([3]int, error) {
	var out [3]int
	core, _, _ := strings.Cut(s, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	if len(parts) > len(out) {
		return out, fmt.Errorf("version %q has more than three numbers", s)
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return out, fmt.Errorf("version %q: %q is not a number", s, part)
		}
		out[i] = n
	}
	return out, nil
}

// checkSeries refuses what is not a series: it becomes part of a directory's and an image's name.
func checkSeries(s string) error {
	if _, err := parseVersion(s); err != nil || strings.ContainsAny(s, "-+") {
		return fmt.Errorf("%q is not a RabbitMQ series: want one like \"4.3\"", s)
	}
	return nil
}

// inSeries tells whether version 4.0.5, say, belongs to series 4.0 (or 4).
func inSeries(version, series string) bool {
	return version == series || strings.HasPrefix(version, series+".")
}

// Series returns the series of the broker's version: "4.0" for 4.0.5.
func Series(b *Broker) string {
	parts := strings.SplitN(b.Version(), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
