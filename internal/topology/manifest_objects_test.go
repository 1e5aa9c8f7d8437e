package topology

import (
	"slices"
	"testing"
)

// TestManifestObjects: what a manifest says must exist is what it was computed from.
func TestManifestObjects(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		for _, tc := range contractCases(c) {
			s := tc.Spec.spec(c)
			want, err := s.Build()
			if err != nil {
				t.Fatal(err)
			}
			m := manifestOf(t, s)
			got := m.Objects()
			if a, b := sortedTexts(got.Exchanges), sortedTexts(want.Exchanges); !slices.Equal(a, b) {
				t.Errorf("%s, %s: exchanges\n%v, want\n%v", c, tc.Name, a, b)
			}
			if a, b := sortedTexts(got.Queues), sortedTexts(want.Queues); !slices.Equal(a, b) {
				t.Errorf("%s, %s: queues\n%v, want\n%v", c, tc.Name, a, b)
			}
			if missing, unexpected := DiffBindings(want.Bindings, got.Bindings); len(missing)+len(unexpected) > 0 {
				t.Errorf("%s, %s: bindings miss %v and have %v", c, tc.Name, missing, unexpected)
			}
		}
	}
}

func sortedTexts[T any](values []T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = CanonicalJSON(v)
	}
	slices.Sort(texts)
	return texts
}
