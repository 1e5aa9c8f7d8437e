package topology

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// contractFile is a golden file of testdata/contract: what one convention
// computes for some specs, complete.
type contractFile struct {
	Convention Convention     `json:"convention"`
	Cases      []contractCase `json:"cases"`
}

type contractCase struct {
	Name      string             `json:"name"`
	Spec      contractSpec       `json:"spec"`
	Exchanges []contractExchange `json:"exchanges"`
	Queues    []contractQueue    `json:"queues"`
	Bindings  []contractBinding  `json:"bindings"`
	Manifest  json.RawMessage    `json:"manifest"`
}

type contractSpec struct {
	Topic            string             `json:"topic"`
	ConsumerGroup    string             `json:"consumer_group,omitempty"`
	VHost            string             `json:"vhost,omitempty"`
	QueueType        QueueType          `json:"queue_type,omitempty"`
	DeadLetterQueue  string             `json:"dead_letter_queue,omitempty"`
	ParkedQueue      string             `json:"parked_queue,omitempty"`
	AllowMessageLoss bool               `json:"allow_message_loss,omitempty"`
	Sequenced        bool               `json:"sequenced,omitempty"`
	SequenceShards   int                `json:"sequence_shards,omitempty"`
	HoldDelays       []Duration         `json:"hold_delays,omitempty"`
	JitterShards     int                `json:"jitter_shards,omitempty"`
	JitterFactor     float64            `json:"jitter_factor,omitempty"`
	DeliveryLimit    int                `json:"delivery_limit,omitempty"`
	MaxPriority      *int               `json:"max_priority,omitempty"`
	Retry            contractRetry      `json:"retry"`
	Park             ParkMode           `json:"park,omitempty"`
	Bindings         []contractBinding  `json:"bindings,omitempty"`
	Extra            map[Role]Arguments `json:"extra_arguments,omitempty"`
}

type contractRetry struct {
	Strategy         Strategy   `json:"strategy,omitempty"`
	MaxRetries       int        `json:"max_retries"`
	Delays           []Duration `json:"delays,omitempty"`
	LastDelayRepeats bool       `json:"last_delay_repeats,omitempty"`
	DelayMin         Duration   `json:"delay_min,omitempty"`
	DelayMax         Duration   `json:"delay_max,omitempty"`
	HoldFrom         Duration   `json:"hold_from,omitempty"`
	GiveUpAfter      Duration   `json:"give_up_after,omitempty"`
	Jitter           float64    `json:"jitter,omitempty"`
}

type contractExchange struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Durable bool   `json:"durable"`
	Shared  bool   `json:"shared"`
}

type contractQueue struct {
	Role      Role      `json:"role"`
	Name      string    `json:"name"`
	Type      QueueType `json:"type"`
	Durable   bool      `json:"durable"`
	Arguments Arguments `json:"arguments"`
}

type contractBinding struct {
	Exchange   string    `json:"exchange"`
	Queue      string    `json:"queue,omitempty"`
	ToExchange string    `json:"to_exchange,omitempty"`
	RoutingKey string    `json:"routing_key"`
	Arguments  Arguments `json:"arguments,omitempty"`
}

func (cs contractSpec) spec(c Convention) Spec {
	s := Spec{
		Identity:  Identity{Topic: cs.Topic, Convention: c, ConsumerGroup: cs.ConsumerGroup, VHost: cs.VHost},
		QueueType: cs.QueueType, DeadLetterQueue: cs.DeadLetterQueue, ParkedQueue: cs.ParkedQueue, AllowMessageLoss: cs.AllowMessageLoss,
		HoldDelays: plainDurations(cs.HoldDelays), JitterShards: cs.JitterShards, JitterFactor: cs.JitterFactor,
		Sequenced: cs.Sequenced, SequenceShards: cs.SequenceShards,
		DeliveryLimit: cs.DeliveryLimit, MaxPriority: cs.MaxPriority, Park: cs.Park, Extra: cs.Extra,
		Retry: RetryPolicy{
			Strategy: cs.Retry.Strategy, MaxRetries: cs.Retry.MaxRetries, Delays: plainDurations(cs.Retry.Delays),
			LastDelayRepeats: cs.Retry.LastDelayRepeats, DelayMin: time.Duration(cs.Retry.DelayMin), DelayMax: time.Duration(cs.Retry.DelayMax),
			HoldFrom: time.Duration(cs.Retry.HoldFrom), GiveUpAfter: time.Duration(cs.Retry.GiveUpAfter), Jitter: cs.Retry.Jitter,
		},
	}
	for _, b := range cs.Bindings {
		s.Bindings = append(s.Bindings, Binding{Source: b.Exchange, RoutingKey: b.RoutingKey, Arguments: b.Arguments})
	}
	return s
}

func plainDurations(list []Duration) []time.Duration {
	var out []time.Duration
	for _, d := range list {
		out = append(out, time.Duration(d))
	}
	return out
}

// TestContract compares everything that is computed with the golden files:
// "go test ./internal/topology -run Contract -update" writes them anew, and
// every line that then differs is a change of the contract.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			file := contractFile{Convention: c, Cases: contractCases(c)}
			for i := range file.Cases {
				compute(t, c, &file.Cases[i])
			}
			var text bytes.Buffer
			enc := json.NewEncoder(&text)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(file); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "contract", string(c)+".json"), text.Bytes())
		})
	}
}

func compute(t *testing.T, c Convention, tc *contractCase) {
	t.Helper()
	s := tc.Spec.spec(c)
	objects, err := s.Build()
	if err != nil {
		t.Fatalf("%s: %v", tc.Name, err)
	}
	m := manifestOf(t, s)
	if back, err := DecodeManifest(m.Encode()); err != nil || !bytes.Equal(back.Encode(), m.Encode()) {
		t.Errorf("%s: the manifest does not read back as it was written: %v", tc.Name, err)
	}
	tc.Exchanges, tc.Queues, tc.Bindings = []contractExchange{}, []contractQueue{}, []contractBinding{}
	for _, e := range objects.Exchanges {
		tc.Exchanges = append(tc.Exchanges, contractExchange{e.Name, e.Type, true, e.Shared})
	}
	for _, q := range objects.Queues {
		tc.Queues = append(tc.Queues, contractQueue{q.Role, q.Name, q.Type, true, q.Arguments})
	}
	for _, b := range objects.Bindings {
		binding := contractBinding{Exchange: b.Source, Queue: b.Destination, RoutingKey: b.RoutingKey, Arguments: b.Arguments}
		if b.DestinationType == BindingToExchange {
			binding.Queue, binding.ToExchange = "", b.Destination
		}
		tc.Bindings = append(tc.Bindings, binding)
	}
	tc.Manifest = m.Encode()
}

// golden compares text with a file, or writes the file.
func golden(t *testing.T, path string, text []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if !bytes.Equal(text, want) {
		got := filepath.Join(t.ArtifactDir(), filepath.Base(path))
		_ = os.WriteFile(got, text, 0o644)
		t.Errorf("%s differs from what is computed now (first at line %d): the contract changed; if it should, write it anew with -update", path, firstDifference(text, want))
	}
}

// firstDifference is the number of the first line in which two texts differ.
func firstDifference(a, b []byte) int {
	al, bl := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(al), len(bl)) {
		if !bytes.Equal(al[i], bl[i]) {
			return i + 1
		}
	}
	return min(len(al), len(bl)) + 1
}
