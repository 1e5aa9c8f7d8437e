package topology

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in        string
		want      time.Duration
		canonical string
	}{
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"5s", 5 * time.Second, "5s"},
		{"2m", 2 * time.Minute, "2m"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"1d", 24 * time.Hour, "1d"},
		{"0s", 0, "0s"},
		{"0d0ms", 0, "0s"},
		{"90s", 90 * time.Second, "1m30s"},
		{"60m", time.Hour, "1h"},
		{"24h", Day, "1d"},
		{"1500ms", 1500 * time.Millisecond, "1s500ms"},
		{"007s", 7 * time.Second, "7s"},
		{"1d2h3m4s5ms", Day + 2*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond, "1d2h3m4s5ms"},
		{"106751d23h47m16s854ms", math.MaxInt64 / time.Millisecond * time.Millisecond, "106751d23h47m16s854ms"},
	} {
		t.Run(tc.in, func(t *testing.T) {
			t.Parallel()
			got, err := ParseDuration(tc.in)
			if err != nil || got != tc.want {
				t.Fatalf("ParseDuration = %v, %v; want %v", got, err, tc.want)
			}
			if text := FormatDuration(got); text != tc.canonical {
				t.Errorf("FormatDuration = %q, want %q", text, tc.canonical)
			}
			if again, err := ParseDuration(tc.canonical); err != nil || again != got {
				t.Errorf("round trip = %v, %v", again, err)
			}
		})
	}
}

func TestParseDurationRefuses(t *testing.T) {
	t.Parallel()
	for in, why := range map[string]string{
		"":                      "it is empty",
		"5":                     "5 has no unit",
		"-5s":                   `a whole number was expected at "-5s"`,
		"+5s":                   "a whole number was expected",
		"1.5s":                  "decimals are not taken, a smaller unit does it: 1500ms is 1.5s",
		" 5s":                   "a whole number was expected",
		"5s ":                   "a whole number was expected",
		"5 s":                   "5 has no unit",
		"s":                     `a whole number was expected at "s"`,
		"5w":                    `unit "w" is not one of d, h, m, s, ms`,
		"5us":                   `unit "us" is not`,
		"5µs":                   `unit "µs" is not`,
		"5S":                    `unit "S" is not`,
		"5m5m":                  `unit "m" is repeated or out of order`,
		"5s1m":                  `unit "m" is repeated or out of order`,
		"1h1d":                  `unit "d" is repeated or out of order`,
		"106751d23h47m16s855ms": "too long to be represented",
		"106752d":               "too long to be represented",
		"99999999999999999999s": "too long to be represented",
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			_, err := ParseDuration(in)
			refused(t, err, why, "write it as 500ms, 5s, 2m, 1h30m or 1d")
		})
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-5 * time.Second:           "-5s",
		-time.Millisecond:          "-1ms",
		-time.Microsecond:          "0s",
		time.Microsecond:           "0s",
		time.Second + 1:            "1s",
		math.MinInt64:              "-106751d23h47m16s854ms",
		math.MaxInt64:              "106751d23h47m16s854ms",
		MaxDelay:                   "49d17h2m47s295ms",
		48*time.Hour + time.Minute: "2d1m",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestDurationJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(map[string]Duration{"wait": Duration(90 * time.Minute)})
	if err != nil || string(text) != `{"wait":"1h30m"}` {
		t.Fatalf("marshal = %s, %v", text, err)
	}
	var back map[string]Duration
	if err := json.Unmarshal(text, &back); err != nil || back["wait"] != Duration(90*time.Minute) {
		t.Errorf("unmarshal = %v, %v", back, err)
	}
	refused(t, json.Unmarshal([]byte(`{"wait":"soon"}`), &back), `"soon"`)
	if err := json.Unmarshal([]byte(`{"wait":90}`), &back); err == nil {
		t.Error("a number was read as a duration")
	}
}
