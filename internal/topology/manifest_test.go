package topology

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The fingerprint of one plain topic, spelled out: if this changes, so does that of every manifest that applications hold.
const plainFingerprint = "sha256:6dbee3fd"

func TestManifestIsStable(t *testing.T) {
	t.Parallel()
	m := manifestOf(t, plain(t, Redeliver))
	if !strings.HasPrefix(m.Fingerprint, plainFingerprint) || len(m.Fingerprint) != len("sha256:")+64 {
		t.Errorf("fingerprint %s, want %s...", m.Fingerprint, plainFingerprint)
	}
	if !bytes.Equal(m.Encode(), manifestOf(t, plain(t, Redeliver)).Encode()) {
		t.Error("one spec has two encodings")
	}
	bare := Manifest{}
	if text := bare.Encode(); bytes.Contains(text, []byte(`_queues": null`)) || !bytes.Contains(text, []byte(`"arguments": {}`)) || !bytes.Contains(text, []byte(`"delays": []`)) {
		t.Errorf("nil lists and maps are not written as empty ones:\n%s", text)
	}
	if !bytes.Contains(manifestOf(t, Spec{Identity: Identity{Topic: "<a&b>"}, AllowMessageLoss: true}).Encode(), []byte(`"topic": "<a&b>"`)) {
		t.Error("the encoding escapes what JSON need not escape")
	}
}

// The fingerprint is that of names, types and arguments, and not of the policy.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := manifestOf(t, plain(t, Redeliver)).Fingerprint
	for name, tc := range map[string]struct {
		change func(*Spec)
		same   bool
	}{
		"policy":    {func(s *Spec) { s.Retry = RetryPolicy{MaxRetries: 7, Jitter: 0.5, GiveUpAfter: Day, Strategy: Hybrid} }, true},
		"park":      {func(s *Spec) { s.Park = ParkPublish }, true},
		"limit":     {func(s *Spec) { s.DeliveryLimit = 51 }, false},
		"delay":     {func(s *Spec) { s.HoldDelays[0]++; s.HoldDelays[0] += 999_999 }, false},
		"vhost":     {func(s *Spec) { s.VHost = "other" }, false},
		"binding":   {func(s *Spec) { s.Bindings = []Binding{{Source: "e"}} }, false},
		"no parked": {func(s *Spec) { s.ParkedQueue = "" }, false},
		"sequence":  {func(s *Spec) { s.Sequenced = true }, false},
		"argument":  {func(s *Spec) { s.Extra = map[Role]Arguments{RoleHold: {"x": "1"}} }, false},
	} {
		s := plain(t, Redeliver)
		tc.change(&s)
		if got := manifestOf(t, s).Fingerprint; (got == base) != tc.same {
			t.Errorf("%s: fingerprint %s, plain %s", name, got, base)
		}
	}
}

func TestManifestOfHybridSaysWhereToHold(t *testing.T) {
	t.Parallel()
	s := plain(t, Redeliver)
	s.Retry.Strategy = Hybrid
	if got := manifestOf(t, s).Retry.HoldFrom; got != Duration(DefaultHoldFrom) {
		t.Errorf("hold_from %s", got)
	}
	s.Retry.HoldFrom = durations(t, "1m")[0]
	if got := manifestOf(t, s).Retry.HoldFrom; got.String() != "1m" {
		t.Errorf("hold_from %s", got)
	}
}

// A manifest may pass through other JSON tools, which sort fields and escape characters.
func TestDecodeManifestMindsContentOnly(t *testing.T) {
	t.Parallel()
	s := plain(t, Redeliver)
	s.Topic = "<orders> & 'ü'"
	s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
	m := manifestOf(t, s)
	var tree map[string]any
	if err := json.Unmarshal(m.Encode(), &tree); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(tree) // sorted, compact, HTML escaped
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"as written": m.Encode(), "sorted": compact, "white space": append([]byte(" \r\n\t"), append(m.Encode(), "\n\n "...)...),
		"numbers": bytes.Replace(m.Encode(), []byte(`"jitter": 0.2`), []byte(`"jitter": 2.0e-1`), 1),
	} {
		back, err := DecodeManifest(text)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeManifestRefuses(t *testing.T) {
	t.Parallel()
	s := plain(t, Redeliver)
	s.Bindings = []Binding{{Source: "e", RoutingKey: "k"}}
	s.Park = ParkPublish
	good := string(manifestOf(t, s).Encode())
	replace := func(old, by string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the manifest has no %q", old)
		}
		return strings.Replace(good, old, by, 1)
	}
	const edited = "edited by hand"
	for name, tc := range map[string]struct {
		text       string
		essentials []string
	}{
		"empty":         {"", []string{"empty", "manifest attribute"}},
		"shown as text": {"<<EOT\n{}\nEOT\n", []string{"terraform output -raw"}},
		"white space":   {" \n\t", []string{"empty"}},
		"not JSON":      {"orders", []string{"not a manifest in JSON", "invalid character 'o'"}},
		"cut off":       {good[:len(good)/2], []string{"not a manifest in JSON"}},
		"text after it": {good + "{}", []string{"more text after its end"}},
		"not UTF-8":     {replace("orders", "\xff"), []string{"not UTF-8"}},
		"UTF-16":        {"\xff\xfe{\x00}\x00", []string{"not UTF-8"}},
		"encoded twice": {CanonicalJSON(good), []string{"JSON string", "encoded once more", "write it as it is"}},
		"a list":        {"[" + good + "]", []string{"a list and not an object"}},
		"null":          {"null", []string{"null and not an object"}},
		"a number":      {"7", []string{"a number and not an object"}},
		"no version":    {replace(`"version": 1,`, ""), []string{"no version", "manifest attribute of a topic resource"}},
		"null version":  {replace(`"version": 1`, `"version": null`), []string{"no version"}},
		"text version":  {replace(`"version": 1`, `"version": "1"`), []string{"no version"}},
		"version 0":     {replace(`"version": 1`, `"version": 0`), []string{"version is 0", "from 1"}},
		"half version":  {replace(`"version": 1`, `"version": 1.5`), []string{"version is 1.5", "whole numbers"}},
		"newer":         {`{"version": 2, "everything": "else"}`, []string{"version 2", "reads up to 1", "upgrade the library", "pin the provider"}},
		"other case":    {replace(`"version": 1`, `"Version": 1`), []string{"no version"}},
		"deep":          {`{"version":1,"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", []string{"deeper than 100"}},

		"unknown at the top":         {replace(`"topic"`, `"color": 1, "topic"`), []string{`"color" is unknown in version 1`, "newer provider"}},
		"unknown in the work queue":  {replace(`"work_queue": {`, `"work_queue": {"color": 1,`), []string{`"work_queue.color" is unknown`}},
		"unknown in a hold queue":    {replace(`"tier": 2`, `"tier": 2, "color": 1`), []string{`"hold_queues[2].color" is unknown`}},
		"unknown in the dead letter": {replace(`"dead_letter": {`, `"dead_letter": {"color": 1,`), []string{`"dead_letter.color" is unknown`}},
		"unknown in retry":           {replace(`"retry": {`, `"retry": {"color": 1,`), []string{`"retry.color" is unknown`}},
		"unknown in headers":         {replace(`"headers": {`, `"headers": {"color": 1,`), []string{`"headers.color" is unknown`}},
		"unknown in a binding":       {replace(`"routing_key": "k"`, `"routing_key": "k", "color": 1`), []string{`"bindings[0].color" is unknown`}},
		"another case":               {replace(`"max_retries"`, `"Max_Retries"`), []string{`"retry.Max_Retries" is unknown`}},
		"twice":                      {replace(`"topic": "orders"`, `"topic": "orders", "topic": "orders"`), []string{`"topic" is there twice`}},
		"twice in arguments":         {replace(`"x-delivery-limit": 1000000`, `"x-delivery-limit": 1, "x-delivery-limit": 1000000`), []string{`"x-delivery-limit" is there twice`}},
		"twice in two cases":         {replace(`"topic": "orders"`, `"topic": "orders", "Topic": "orders"`), []string{`"Topic" is unknown`}},
		"empty option":               {replace(`"convention"`, `"consumer_group": "", "convention"`), []string{`"consumer_group" is unknown`}},

		"missing":             {replace(`"retry_exchange": "orders-retry",`, ""), []string{`"retry_exchange" is missing`, edited}},
		"missing, null":       {replace(`"exchange": "e",`, ""), []string{`"bindings[0].exchange" is missing`}},
		"null object":         {replace(`"headers": {`, `"headers": null, "x": {`), []string{`"x" is unknown`}},
		"null retry":          {strings.Replace(good, good[strings.Index(good, `"retry": {`):strings.Index(good, `"final"`)], `"retry": null,`, 1), []string{`"retry" is null and must be an object`}},
		"null list":           {strings.Replace(good, good[strings.Index(good, `"bindings": [`):strings.Index(good, `"fingerprint"`)], `"bindings": null,`, 1), []string{`"bindings" is null and must be a list`}},
		"null text":           {replace(`"final": "broker"`, `"final": null`), []string{`"final" is null`, `would have written ""`, edited}},
		"null arguments":      {strings.Replace(good, good[strings.Index(good, `"arguments": {`):strings.Index(good, `"hold_queues"`)], `"arguments": null},`, 1), []string{`"work_queue.arguments" is null and must be an object`}},
		"text for a number":   {replace(`"max_retries": 3`, `"max_retries": "3"`), []string{`max_retries`, "is a string", edited}},
		"fraction":            {replace(`"max_retries": 3`, `"max_retries": 3.5`), []string{`max_retries`, "number 3.5"}},
		"object for a list":   {replace(`"hold_queues": [`, `"hold_queues": {"a": [`), nil},
		"bad duration":        {replace(`"consumer_timeout": "30m"`, `"consumer_timeout": "soon"`), []string{`"soon"`}},
		"duration, canonical": {replace(`"consumer_timeout": "30m"`, `"consumer_timeout": "1800s"`), []string{`"retry.consumer_timeout" is "1800s"`, `would have written "30m"`}},

		"edited argument":    {replace(`"x-message-ttl": 5000`, `"x-message-ttl": 6000`), []string{`topic "orders"`, "fingerprint does not match", "edited", "as it is"}},
		"edited name":        {replace(`"name": "orders-dlq"`, `"name": "orders-dlq2"`), []string{"fingerprint does not match"}},
		"number for text":    {replace(`"x-message-ttl": 5000`, `"x-message-ttl": "5000"`), []string{"fingerprint does not match"}},
		"edited fingerprint": {replace(`"fingerprint": "sha256:`, `"fingerprint": "sha512:`), []string{"fingerprint does not match"}},
		"convention":         {replace(`"convention": "redeliver"`, `"convention": "kafka"`), []string{`"kafka"`, `"redeliver"`}},
		"no convention":      {replace(`"convention": "redeliver"`, `"convention": ""`), []string{"convention", "empty"}},
		"broker":             {replace(`"broker": "rabbitmq"`, `"broker": "kafka"`), []string{`broker "kafka"`, `"rabbitmq"`}},

		"strategy":         {replace(`"strategy": "in_place"`, `"strategy": "wait"`), []string{`strategy "wait"`, `"in_place"`}},
		"negative retries": {replace(`"max_retries": 3`, `"max_retries": -3`), []string{"max_retries -3"}},
		"delays": {replace(`"5s",
      "30s"`, `"30s",
      "5s"`), []string{"retry.delays", "delay 2 (5s)"}},
		"jitter":             {replace(`"jitter": 0.2`, `"jitter": 2`), []string{"jitter 2"}},
		"hold_from":          {replace(`"jitter"`, `"hold_from": "5s", "jitter"`), []string{"hold_from 5s", "in_place"}},
		"delay_min":          {replace(`"jitter"`, `"delay_min": "5s", "delay_max": "6s", "jitter"`), []string{"delay_min 5s", "in_place"}},
		"no hybrid":          {replace(`"strategy": "in_place"`, `"strategy": "hybrid"`), []string{"hold_from 0s", "hybrid"}},
		"no broker delay":    {replace(`"strategy": "in_place"`, `"strategy": "broker_delayed"`), []string{"delay_min 0s", "broker_delayed"}},
		"no time":            {replace(`"consumer_timeout": "30m"`, `"consumer_timeout": "0s"`), []string{"consumer_timeout 0s"}},
		"park":               {replace(`"park": "publish"`, `"park": "keep"`), []string{`park "keep"`, `"reject"`}},
		"final":              {replace(`"final": "broker"`, `"final": "drop"`), []string{`final "drop"`, `"publish"`}},
		"several at a time":  {strings.Replace(replace(`"final": "broker"`, `"final": "drop"`), `"jitter": 0.2`, `"jitter": 2`, 1), []string{`final "drop"`, "jitter 2"}},
		"no delays of tiers": {strings.Replace(good, good[strings.Index(good, `"delays": [`):strings.Index(good, `"jitter"`)], `"delays": ["5s"],`, 1), []string{"orders-hold-30s", "tier 1", "1 delays"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := DecodeManifest([]byte(tc.text))
			refused(t, err, append(tc.essentials, "manifest")...)
		})
	}
	if _, err := DecodeManifest([]byte(good)); err != nil {
		t.Errorf("the manifest that all of these come from: %v", err)
	}
}

// Manifests whose fingerprint is right and whose content no spec has.
func TestDecodeManifestRefusesImpossible(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change     func(*Manifest)
		essentials []string
	}{
		"no work queue":   {func(m *Manifest) { m.WorkQueue.Name = "" }, []string{"no name"}},
		"type":            {func(m *Manifest) { m.WorkQueue.Type = "stream" }, []string{`"orders"`, `"stream"`, `"quorum"`}},
		"no type":         {func(m *Manifest) { m.Parked.Type = "" }, []string{`"orders-parked"`, `type ""`}},
		"tier":            {func(m *Manifest) { m.HoldQueues[0].Tier = 3 }, []string{"orders-hold-5s", "tier 3"}},
		"shard":           {func(m *Manifest) { m.HoldQueues[0].Shard = -1 }, []string{"shard -1"}},
		"no delay":        {func(m *Manifest) { m.HoldQueues[0].Delay = 0 }, []string{"delay 0s"}},
		"no delays":       {func(m *Manifest) { m.HoldQueues, m.Retry.Delays = nil, nil }, []string{"3 retries with no delays"}},
		"no topic":        {func(m *Manifest) { m.Topic = "" }, []string{`topic ""`, "empty"}},
		"no vhost":        {func(m *Manifest) { m.VHost = "" }, []string{`vhost ""`}},
		"nowhere to park": {func(m *Manifest) { m.Park, m.Parked = ParkPublish, nil }, []string{`park = "publish" without a parked queue`}},
		"nowhere to die":  {func(m *Manifest) { m.Final, m.DeadLetter = FinalPublish, nil }, []string{`final = "publish" without a dead-letter queue`}},
		"nowhere to wait": {func(m *Manifest) { m.Retry.Strategy, m.HoldQueues = Republish, nil }, []string{`"republish"`, "there are none"}},
		"waits backwards": {func(m *Manifest) { m.Retry.Strategy, m.Retry.DelayMin, m.Retry.DelayMax = BrokerDelayed, 2e9, 1e9 }, []string{"delay_min 2s", "delay_max 1s"}},
		"shards of nothing": {func(m *Manifest) {
			m.WorkQueue.Arguments[ArgSingleActiveConsumer] = true
			m.Sequence = &ManifestSequence{Exchange: "orders-seq-hash"}
		}, []string{`exchange "orders-seq-hash"`, "0 shards"}},
		"other shards": {func(m *Manifest) {
			m.WorkQueue.Arguments[ArgSingleActiveConsumer] = true
			m.Sequence = &ManifestSequence{Exchange: "e", Shards: []ManifestQueue{{Name: "orders-seq-0", Type: Classic}}}
		}, []string{`"orders"`, `"orders-seq-0"`}},
		"a shard of no name": {func(m *Manifest) {
			m.Sequence = &ManifestSequence{Exchange: "e", Shards: []ManifestQueue{{Type: Classic}}}
		}, []string{"no name"}},
		"many at a time": {func(m *Manifest) { m.Sequence = &ManifestSequence{} }, []string{`"orders"`, "one consumer at a time", "x-single-active-consumer"}},
		"out of order":   {func(m *Manifest) { m.Retry.Strategy, m.Sequence = Republish, &ManifestSequence{} }, []string{"sequence", `"republish"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := manifestOf(t, plain(t, Redeliver))
			tc.change(&m)
			m.Fingerprint = m.fingerprint()
			_, err := DecodeManifest(m.Encode())
			refused(t, err, tc.essentials...)
		})
	}
}

// Every golden manifest decodes, and encodes as it is.
func TestGoldenManifestsDecode(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "contract", "*.json"))
	if err != nil || len(files) != len(Conventions()) {
		t.Fatalf("golden files %v, %v", files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file contractFile
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, tc := range file.Cases {
			m, err := DecodeManifest(tc.Manifest)
			if err != nil {
				t.Errorf("%s, %s: %v", path, tc.Name, err)
				continue
			}
			want := manifestOf(t, tc.Spec.spec(file.Convention))
			if !bytes.Equal(m.Encode(), want.Encode()) {
				t.Errorf("%s, %s: the golden spec computes another manifest", path, tc.Name)
			}
		}
	}
}
