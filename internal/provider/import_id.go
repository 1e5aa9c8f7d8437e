package provider

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// importID is the identifier that every resource is imported by and shows as
// its id: path segments and parameters, each percent-encoded, so that a name
// may hold any byte:
//
//	%2F/orders?convention=shove&consumer_group=eu
type importID struct {
	segments []string
	params   map[string]string
}

// String writes the identifier. Parameters are in alphabetical order and left out where they are empty.
func (id importID) String() string {
	var b strings.Builder
	for i, segment := range id.segments {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(encodeSegment(segment))
	}
	separator := byte('?')
	keys := make([]string, 0, len(id.params))
	for key := range id.params {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if id.params[key] == "" {
			continue
		}
		b.WriteByte(separator)
		separator = '&'
		b.WriteString(key + "=" + encodeSegment(id.params[key]))
	}
	return b.String()
}

// encodeSegment percent-encodes everything that is not unreserved in a URL.
func encodeSegment(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// parseImportID reads an identifier of the given form, such as "VHOST/TOPIC",
// that may have the given parameters.
func parseImportID(text, form string, params ...string) (importID, error) {
	want := strings.Split(form, "/")
	example := make([]string, 0, len(params))
	for _, p := range params {
		example = append(example, p+"=...")
	}
	full := form
	if len(example) > 0 {
		full += "?" + strings.Join(example, "&")
	}
	fail := func(why string) (importID, error) {
		return importID{}, fmt.Errorf("import id %q: %s; write it as %s, each part percent-encoded (the default vhost is %%2F, a slash in a name %%2F, a percent sign %%25)", text, why, full)
	}
	head, query, _ := strings.Cut(text, "?")
	parts := strings.Split(head, "/")
	if len(parts) != len(want) {
		return fail(fmt.Sprintf("it has %d parts separated by slashes and %d are expected", len(parts), len(want)))
	}
	id := importID{params: map[string]string{}}
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return fail(err.Error())
		}
		if decoded == "" {
			return fail("the part " + want[i] + " is empty")
		}
		id.segments = append(id.segments, decoded)
	}
	if query == "" {
		return id, nil
	}
	for _, pair := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if !slices.Contains(params, key) {
			return fail(fmt.Sprintf("parameter %q is not known", key))
		}
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return fail(err.Error())
		}
		id.params[key] = decoded
	}
	return id, nil
}
