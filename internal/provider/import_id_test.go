package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestImportIDIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]importID{
		"%2F/orders": {segments: []string{"/", "orders"}},
		"%2F/orders?consumer_group=eu&convention=shove": {
			segments: []string{"/", "orders"}, params: map[string]string{"convention": "shove", "consumer_group": "eu"},
		},
		"a%40b/c%20d%3F%23%25%3B%2F%26%3D%2B?name=%C3%BC%22%27": {
			segments: []string{"a@b", "c d?#%;/&=+"}, params: map[string]string{"name": `ü"'`},
		},
		"shop/-._~": {segments: []string{"shop", "-._~"}},
	} {
		if got := want.String(); got != text {
			t.Errorf("written %q, want %q", got, text)
		}
		got, err := parseImportID(text, "VHOST/TOPIC", "convention", "consumer_group", "name")
		if err != nil || !slices.Equal(got.segments, want.segments) || !maps.Equal(got.params, want.params) {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestImportIDForgivesWhatIsUnambiguous(t *testing.T) {
	t.Parallel()
	got, err := parseImportID("a@b;c/sp ace+?name=x=y/z?", "VHOST/TOPIC", "name")
	if err != nil || !slices.Equal(got.segments, []string{"a@b;c", "sp ace+"}) || got.params["name"] != "x=y/z?" {
		t.Errorf("read as %+v, %v", got, err)
	}
}

func TestImportIDRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                        "has 1 parts separated by slashes and 2 are expected",
		"orders":                  "has 1 parts",
		"//orders":                "has 3 parts",
		"/orders":                 "the part VHOST is empty",
		"shop/":                   "the part TOPIC is empty",
		"shop/a/b":                "has 3 parts",
		"shop/100%":               "invalid URL escape",
		"shop/orders?x=1":         `parameter "x" is not known`,
		"shop/orders?name=%":      "invalid URL escape",
		"shop/orders?name=a&":     `parameter "" is not known`,
		"shop/orders?name=a;b=c&": `parameter "" is not known`,
	} {
		_, err := parseImportID(text, "VHOST/TOPIC", "name")
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "write it as VHOST/TOPIC?name=...") {
			t.Errorf("%q: %v, want an error that says %q and how to write it", text, err, says)
		}
	}
}

func FuzzImportIDRoundTrip(f *testing.F) {
	f.Add("/", "orders", "")
	f.Add("a@b", "c d?#%;/&=+", "ü\"'")
	f.Add("\x00\xff", "%2F", "a+b")
	f.Fuzz(func(t *testing.T, vhost, topic, name string) {
		if vhost == "" || topic == "" {
			t.Skip("empty parts are refused")
		}
		id := importID{segments: []string{vhost, topic}, params: map[string]string{"name": name}}
		got, err := parseImportID(id.String(), "VHOST/TOPIC", "name")
		if err != nil || !slices.Equal(got.segments, id.segments) || got.params["name"] != name {
			t.Fatalf("%+v is written %q and read as %+v, %v", id, id.String(), got, err)
		}
	})
}
