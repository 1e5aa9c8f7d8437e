package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day is the largest unit a duration is written in. It is always 24 hours.
const Day = 24 * time.Hour

// durationUnits are the units a duration is written in, largest first, which
// is also the only order they may appear in.
var durationUnits = []struct {
	suffix string
	size   time.Duration
}{
	{"d", Day},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
}

// ParseDuration reads a duration such as "500ms", "5s", "2m", "1h30m" or "1d":
// whole numbers with the units d, h, m, s and ms, larger units first, each at
// most once. The result is a whole number of milliseconds, the broker's
// resolution. "0s" is the zero duration. Fractions, signs, spaces and a number
// without a unit are refused.
func ParseDuration(s string) (time.Duration, error) {
	fail := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("duration %q: %s; write it as 500ms, 5s, 2m, 1h30m or 1d", s, why)
	}
	if s == "" {
		return fail("it is empty")
	}
	var total time.Duration
	next := 0 // index of the largest unit still allowed
	for rest := s; rest != ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 {
			return fail(fmt.Sprintf("a whole number was expected at %q", rest))
		}
		number := rest[:digits]
		rest = rest[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ"))
		unit := rest[:letters]
		rest = rest[letters:]
		if strings.HasPrefix(rest, ".") && unit == "" {
			return fail("decimals are not taken, a smaller unit does it: 1500ms is 1.5s")
		}
		if unit == "" {
			return fail(fmt.Sprintf("%s has no unit", number))
		}
		found := -1
		for i, u := range durationUnits {
			if u.suffix == unit {
				found = i
			}
		}
		switch {
		case found < 0:
			return fail(fmt.Sprintf("unit %q is not one of d, h, m, s, ms", unit))
		case found < next:
			return fail(fmt.Sprintf("unit %q is repeated or out of order", unit))
		}
		next = found + 1
		n, err := strconv.ParseInt(number, 10, 64)
		size := durationUnits[found].size
		if err != nil || n > int64((1<<63-1-total)/size) {
			return fail("it is too long to be represented")
		}
		total += time.Duration(n) * size
	}
	return total, nil
}

// FormatDuration prints d in the one canonical form: the fewest units, larger
// first, none of them zero ("1h30m", "1m30s", "1d"); zero is "0s". Parts below
// a millisecond are dropped, and a negative duration has a leading "-", which
// [ParseDuration] refuses.
func FormatDuration(d time.Duration) string {
	if d <= -time.Millisecond {
		return "-" + FormatDuration(-max(d, -math.MaxInt64)) // the least duration has no positive counterpart
	}
	var b strings.Builder
	for _, u := range durationUnits {
		if n := d / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.suffix)
			d -= n * u.size
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// Duration is a time.Duration that is written in JSON in the canonical form of
// [FormatDuration].
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(FormatDuration(time.Duration(d))), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// String implements fmt.Stringer.
func (d Duration) String() string { return FormatDuration(time.Duration(d)) }
