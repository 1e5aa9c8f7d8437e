package rabbitmqadmin

import (
	"strings"
	"testing"
)

func TestTopicMatches(t *testing.T) {
	t.Parallel()
	for pattern, keys := range map[string]struct{ yes, no []string }{
		"a.b":   {[]string{"a.b"}, []string{"", "a", "a.c", "a.b.c", "b.a"}},
		"*":     {[]string{"a", ""}, []string{"a.b", "."}},
		"#":     {[]string{"", "a", "a.b", "a.b.c", "."}, nil},
		"a.*":   {[]string{"a.b", "a."}, []string{"a", "b.a", "a.b.c"}},
		"a.#":   {[]string{"a", "a.b", "a.b.c"}, []string{"", "b", "b.a"}},
		"#.a":   {[]string{"a", "b.a", "c.b.a"}, []string{"", "a.b"}},
		"a.#.b": {[]string{"a.b", "a.c.b", "a.c.d.b", "a.b.b"}, []string{"a", "b", "a.b.c"}},
		"*.#":   {[]string{"a", "a.b", ""}, nil},
		"#.*.#": {[]string{"a", "a.b"}, nil},
		"":      {[]string{""}, []string{"a", "."}},
	} {
		for _, key := range keys.yes {
			if !topicMatches(strings.Split(pattern, "."), strings.Split(key, ".")) {
				t.Errorf("%q does not match %q", pattern, key)
			}
		}
		for _, key := range keys.no {
			if topicMatches(strings.Split(pattern, "."), strings.Split(key, ".")) {
				t.Errorf("%q matches %q", pattern, key)
			}
		}
	}
}
