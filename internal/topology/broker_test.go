package topology

import "testing"

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	delayed := plain(t, Redeliver)
	brokerDelayed(&delayed)
	for _, version := range []string{"4.3.0", "4.3", "4.10.1", "5.0.0", "4.3.0-rc.1"} {
		if err := delayed.CheckVersion(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	for _, version := range []string{"3.10.8", "3.13.7", "4.2.6", "4.0.5", "4", "", "next", "4.x.1"} {
		refused(t, delayed.CheckVersion(version), `"broker_delayed"`, `topic "orders"`, "4.3 or later", "is "+version, `"in_place"`, `"republish" or "hybrid"`)
	}
	if err := plain(t, Redeliver).CheckVersion("3.10.8"); err != nil {
		t.Errorf("another strategy: %v", err)
	}
}

func TestCheckExchangeTypes(t *testing.T) {
	t.Parallel()
	s := plain(t, Shove)
	if err := s.CheckExchangeTypes(nil); err != nil {
		t.Errorf("a topic without shards: %v", err)
	}
	sequenced(&s)
	if err := s.CheckExchangeTypes([]string{"direct", "x-consistent-hash"}); err != nil {
		t.Errorf("the plugin is there: %v", err)
	}
	refused(t, s.CheckExchangeTypes([]string{"direct"}), `topic "orders"`, "2 shards", `"x-consistent-hash"`, "rabbitmq-plugins enable rabbitmq_consistent_hash_exchange")
}

// A queue of dead letters that is bounded drops some, unless it has somewhere to send them, or refuses them to a queue
// that keeps what is refused.
func TestDropping(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		convention Convention
		args       Arguments
		want       string
	}{
		"nothing":               {Redeliver, Arguments{"x-queue-leader-locator": "balanced"}, "[]"},
		"all of them":           {Shove, Arguments{ArgMaxLength: int64(5), ArgMaxLengthBytes: int64(5), ArgMessageTTL: int64(5)}, `["x-max-length","x-max-length-bytes","x-message-ttl"]`},
		"an archive":            {Redeliver, Arguments{ArgMessageTTL: int64(5), ArgMaxLength: int64(5), ArgDeadLetterExchange: "archive"}, "[]"},
		"refused and kept":      {Redeliver, Arguments{ArgMaxLength: int64(5), ArgOverflow: "reject-publish", ArgMessageTTL: int64(5)}, `["x-message-ttl"]`},
		"refused and lost":      {Shove, Arguments{ArgMaxLength: int64(5), ArgOverflow: "reject-publish"}, `["x-max-length"]`},
		"the oldest are driven": {Redeliver, Arguments{ArgMaxLength: int64(5), ArgOverflow: "drop-head"}, `["x-max-length"]`},
	} {
		if got := CanonicalJSON(append([]string{}, tc.convention.Dropping(tc.args)...)); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
