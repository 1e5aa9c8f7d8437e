package sqstest

import (
	"regexp"
	"testing"
)

func TestUniqueName(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[A-Za-z0-9_-]{1,41}$`)
	for _, test := range []string{"TestX", "TestDrift/of_every (attribute)#01", "Test/" + string(make([]byte, 200)), "Benchmark"} {
		name := uniqueName(test)
		if !valid.MatchString(name) || name == uniqueName(test) {
			t.Errorf("uniqueName(%q) = %q", test, name)
		}
	}
}
