package topology

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ManifestVersion is the version of the manifest that this package writes, and
// the newest it reads.
const ManifestVersion = 1

// BrokerRabbitMQ is the manifest's broker kind for RabbitMQ.
const BrokerRabbitMQ = "rabbitmq"

// Manifest is the document a topic resource computes and a consumer binds to.
// It is computed from configuration, never from live values, and holds no
// secrets. Fields are in the order in which they are written.
type Manifest struct {
	// Version is the manifest's version, 1.
	Version int `json:"version"`
	// Broker is the kind of broker, "rabbitmq".
	Broker string `json:"broker"`
	// VHost is the virtual host that holds the topology.
	VHost string `json:"vhost"`
	// Topic is the topic's name.
	Topic string `json:"topic"`
	// Convention names the naming and argument scheme.
	Convention Convention `json:"convention"`
	// ConsumerGroup is part of derived names where it is set.
	ConsumerGroup string `json:"consumer_group,omitempty"`
	// WorkQueue is the queue that is consumed.
	WorkQueue ManifestQueue `json:"work_queue"`
	// HoldQueues are the ladder, shortest delay first; empty where no ladder was handed over.
	HoldQueues []ManifestHoldQueue `json:"hold_queues"`
	// RetryExchange is the exchange that hold queues are published to through; empty is the default exchange.
	RetryExchange string `json:"retry_exchange"`
	// DeadLetter is where messages go that failed for good; null where they are discarded.
	DeadLetter *ManifestTarget `json:"dead_letter"`
	// Parked is where messages go that nobody could read; null where they are dead-lettered.
	Parked *ManifestTarget `json:"parked"`
	// Retry is the retry policy.
	Retry ManifestRetry `json:"retry"`
	// Final says how a message that failed for good leaves the work queue: "broker" (rejected, and the queue's own
	// dead-letter exchange carries it) or "publish" (published to the dead-letter target, then acknowledged).
	Final FinalMode `json:"final"`
	// Park says how Park is carried out: "reject" (as a failed message) or "publish" (to the parked target).
	Park ParkMode `json:"park"`
	// Headers are the headers in which the convention keeps a message's history.
	Headers Headers `json:"headers"`
	// Bindings are where the topic's messages come from.
	Bindings []ManifestBinding `json:"bindings"`
	// Fingerprint is a digest of every name, type and argument above; two manifests with the same one describe the same
	// topology.
	Fingerprint string `json:"fingerprint"`
}

// FinalMode says how a message that failed for good leaves the work queue.
type FinalMode string

// The final modes.
const (
	FinalBroker  FinalMode = "broker"
	FinalPublish FinalMode = "publish"
)

// ManifestQueue is a queue with its arguments.
type ManifestQueue struct {
	Name      string    `json:"name"`
	Type      QueueType `json:"type"`
	Arguments Arguments `json:"arguments"`
}

// ManifestHoldQueue is a hold queue of the ladder.
type ManifestHoldQueue struct {
	ManifestQueue
	// Delay is how long the queue holds a message.
	Delay Duration `json:"delay"`
	// Tier and Shard place the queue in the ladder, both from 0.
	Tier  int `json:"tier"`
	Shard int `json:"shard"`
}

// ManifestTarget is a queue that messages are set aside in and the route that leads there.
type ManifestTarget struct {
	ManifestQueue
	// Exchange and RoutingKey lead to the queue; an empty exchange is the default one.
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
}

// ManifestRetry is the retry policy.
type ManifestRetry struct {
	Strategy   Strategy `json:"strategy"`
	MaxRetries int      `json:"max_retries"`
	// Delays are the tiers, shortest first.
	Delays []Duration `json:"delays"`
	// HoldFrom is the shortest delay that the hybrid strategy waits in a hold queue; absent under the others.
	HoldFrom Duration `json:"hold_from,omitempty"`
	// GiveUpAfter is the age at which a message is retried no more; absent is never.
	GiveUpAfter Duration `json:"give_up_after,omitempty"`
	// Jitter is the factor by which waits in the consumer vary both ways.
	Jitter float64 `json:"jitter"`
	// ConsumerTimeout is how long the broker lets a consumer hold a delivery.
	ConsumerTimeout Duration `json:"consumer_timeout"`
}

// ManifestBinding is where some of the topic's messages come from.
type ManifestBinding struct {
	Exchange   string    `json:"exchange"`
	RoutingKey string    `json:"routing_key"`
	Arguments  Arguments `json:"arguments,omitempty"`
}

// Manifest computes the topic's manifest. It refuses what [Spec.Validate] refuses.
func (s Spec) Manifest() (Manifest, error) {
	objects, err := s.Build()
	if err != nil {
		return Manifest{}, err
	}
	scheme := s.Convention.scheme()
	m := Manifest{
		Version: ManifestVersion, Broker: BrokerRabbitMQ, VHost: s.vhost(), Topic: s.Topic,
		Convention: s.convention(), ConsumerGroup: s.ConsumerGroup,
		HoldQueues: []ManifestHoldQueue{}, Bindings: []ManifestBinding{},
		Retry: ManifestRetry{
			Strategy: s.Retry.strategy(), MaxRetries: s.Retry.MaxRetries, Delays: make([]Duration, len(s.Retry.Delays)),
			GiveUpAfter: Duration(s.Retry.GiveUpAfter), Jitter: s.Retry.Jitter, ConsumerTimeout: Duration(s.ConsumerTimeout()),
		},
		Final: FinalBroker, Park: s.Park, Headers: scheme.headers,
	}
	if m.Park == "" {
		m.Park = ParkReject
	}
	if m.Retry.Strategy == Hybrid {
		m.Retry.HoldFrom = Duration(s.Retry.holdFrom())
	}
	for i, delay := range s.Retry.Delays {
		m.Retry.Delays[i] = Duration(delay)
	}
	if scheme.holdRoutedBy != nil {
		m.RetryExchange = scheme.holdRoutedBy(s.base())
	}
	if scheme.deadExchange == nil && s.DeadLetterQueue != "" {
		m.Final = FinalPublish
	}
	deadExchange := ""
	if scheme.deadRoutedBy != nil {
		deadExchange = scheme.deadRoutedBy(s.base())
	}
	for _, q := range objects.Queues {
		queue := ManifestQueue{Name: q.Name, Type: q.Type, Arguments: q.Arguments}
		target := &ManifestTarget{ManifestQueue: queue, Exchange: deadExchange, RoutingKey: q.Name}
		switch q.Role {
		case RoleWork:
			m.WorkQueue = queue
		case RoleHold:
			m.HoldQueues = append(m.HoldQueues, ManifestHoldQueue{ManifestQueue: queue, Delay: Duration(q.Delay), Tier: q.Tier, Shard: q.Shard})
		case RoleDeadLetter:
			m.DeadLetter = target
		case RoleParked:
			m.Parked = target
		}
	}
	for _, b := range s.Bindings {
		m.Bindings = append(m.Bindings, ManifestBinding{Exchange: b.Source, RoutingKey: b.RoutingKey, Arguments: b.Arguments})
	}
	m.Fingerprint = m.fingerprint()
	return m, nil
}

// Encode writes the manifest as indented JSON that is the same, byte for byte,
// on every machine.
func (m Manifest) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		panic(fmt.Sprintf("topology: a manifest always encodes: %v", err)) // arguments are normalised JSON values
	}
	return b.Bytes()
}

// fingerprint digests every name, type and argument.
func (m Manifest) fingerprint() string {
	m.Fingerprint = ""
	m.Retry = ManifestRetry{} // policy, not topology
	m.Park, m.Final, m.Headers = "", "", Headers{}
	sum := sha256.Sum256([]byte(CanonicalJSON(m)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// DecodeManifest reads a manifest. A manifest of a newer version, an unknown
// field and anything that no topic resource would have written are refused.
func DecodeManifest(text []byte) (Manifest, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return Manifest{}, errors.New("manifest: it is empty; write the topic resource's manifest attribute to it")
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Manifest{}, fmt.Errorf("manifest: it is not a manifest in JSON: %w", err)
	}
	switch {
	case head.Version == nil || *head.Version < 1:
		return Manifest{}, errors.New("manifest: it has no version; is it the manifest attribute of a topic resource?")
	case *head.Version > ManifestVersion:
		return Manifest{}, fmt.Errorf("manifest: it has version %d and this library reads up to %d; upgrade the library, or pin the provider to the release that wrote version %d",
			*head.Version, ManifestVersion, ManifestVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return Manifest{}, fmt.Errorf("manifest: field %s is unknown in version %d; was it edited by hand, or written by a newer provider?", field, *head.Version)
		}
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Manifest{}, errors.New("manifest: there is more text after its end")
	}
	if err := m.validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// validate refuses a manifest that a consumer could not act on.
func (m Manifest) validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("manifest of topic %q: "+format, append([]any{m.Topic}, args...)...)
	}
	if m.Broker != BrokerRabbitMQ {
		return fail("broker %q is not known: use %q", m.Broker, BrokerRabbitMQ)
	}
	if _, err := ParseConvention(string(m.Convention)); err != nil || m.Convention == "" {
		return fail("convention %q is not known", m.Convention)
	}
	if m.WorkQueue.Name == "" {
		return fail("it names no work queue")
	}
	if m.Fingerprint != m.fingerprint() {
		return fail("its fingerprint does not match its content: it was edited after the provider wrote it; take the topic resource's manifest attribute as it is")
	}
	if m.Retry.MaxRetries < 0 || m.Retry.MaxRetries > 0 && len(m.Retry.Delays) == 0 {
		return fail("retry: %d retries with %d delays is no policy", m.Retry.MaxRetries, len(m.Retry.Delays))
	}
	if m.Park == ParkPublish && m.Parked == nil {
		return fail("park = %q without a parked queue", m.Park)
	}
	if m.Final == FinalPublish && m.DeadLetter == nil {
		return fail("final = %q without a dead-letter queue", m.Final)
	}
	return nil
}
