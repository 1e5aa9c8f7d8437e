package provider

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// runtime is what every resource of one run shares. It lives as long as the
// provider's process, which is one plan or one apply.
type runtime struct {
	// vhost, convention and consumerGroup are the provider's defaults; any of them may be unknown while planning.
	vhost, convention, consumerGroup types.String

	rabbitMQ struct {
		client *rabbitmqadmin.Client // nil where it is not configured, or not known yet
		// unknown: some part of the configuration is only known after another resource was applied.
		unknown bool
		// unreachable is why no broker answered when the provider was configured; said is that a resource reported it.
		unreachable error
		said        sync.Once
	}

	sqs sqsRuntime

	locks keyedLocks

	// refreshed: this run reads what is there, so that it is a plan. applying: it writes.
	refreshed, applying atomic.Bool

	// unchecked: that a plan could not ask the broker was said.
	unchecked sync.Once

	mu sync.Mutex
	// seen are the queues, exchanges and bindings that the state has, as far as they were refreshed.
	seen map[string]bool
	// circles are those in which dead letters go that a plan said something about.
	circles map[string]bool
	// plans are what this run plans, by vhost.
	plans map[string]*rabbitmqadmin.Plan
	// created are the queues and exchanges that this run made, to tell "two resources with one name" from "it was there".
	created map[string]bool
	// carried are the bindings that went with what this run deleted, by its name: a replacement gets them back.
	carried map[string][]topology.Binding
}

func newRuntime(convention, consumerGroup types.String) *runtime {
	rt := &runtime{
		vhost: types.StringValue(topology.DefaultVHost), convention: convention, consumerGroup: consumerGroup,
		seen: map[string]bool{}, circles: map[string]bool{}, plans: map[string]*rabbitmqadmin.Plan{}, created: map[string]bool{},
		carried: map[string][]topology.Binding{},
	}
	if convention.IsNull() {
		rt.convention = types.StringValue(string(topology.Redeliver))
	}
	return rt
}

var (
	errNotConfigured = errors.New("no RabbitMQ is configured: set rabbitmq = { endpoints = [...], username, password } in the provider block, " +
		"or the environment variables REDELIVER_RABBITMQ_ENDPOINTS, REDELIVER_RABBITMQ_USERNAME and REDELIVER_RABBITMQ_PASSWORD")
	errUnknown = errors.New("the provider's RabbitMQ configuration is not known yet: it comes from a resource that was not applied; apply that first (terraform apply -target=...)")
)

// admin returns the client for RabbitMQ's management API to who is about to write.
func (rt *runtime) admin() (*rabbitmqadmin.Client, error) {
	rt.applying.Store(true)
	return rt.client()
}

func (rt *runtime) client() (*rabbitmqadmin.Client, error) {
	switch {
	case rt.rabbitMQ.unknown:
		return nil, errUnknown
	case rt.rabbitMQ.client == nil:
		return nil, errNotConfigured
	}
	return rt.rabbitMQ.client, nil
}

// reader returns the view of the broker for a refresh. While the provider's configuration is not known the state is kept as it is,
// and the warning says so. A broker that did not answer is an error once, not once a resource: the refresh fails as a
// whole, and keeps every state.
func (rt *runtime) reader(diags *diag.Diagnostics) (*rabbitmqadmin.View, bool) {
	rt.refreshed.Store(true)
	client, err := rt.client()
	switch {
	case errors.Is(err, errUnknown):
		diags.AddWarning("Not compared with the broker", "The provider's RabbitMQ configuration is not known yet, so this plan trusts the state as it was last seen.")
	case err != nil:
		rt.refuseUnconfigured(diags)
	case rt.rabbitMQ.unreachable != nil:
		rt.rabbitMQ.said.Do(func() { addError(diags, "RabbitMQ does not answer", rt.rabbitMQ.unreachable) })
	default:
		return client.View(), true
	}
	return nil, false
}

// refuseUnconfigured says once that there is no RabbitMQ, which every resource needs.
func (rt *runtime) refuseUnconfigured(diags *diag.Diagnostics) {
	if _, err := rt.client(); errors.Is(err, errNotConfigured) {
		rt.rabbitMQ.said.Do(func() { addError(diags, "RabbitMQ is not configured", err) })
	}
}

// asker returns the client for what a plan would like to know and can do without.
func (rt *runtime) asker() (*rabbitmqadmin.Client, error) {
	client, err := rt.client()
	if err == nil {
		err = rt.rabbitMQ.unreachable
	}
	return client, err
}

// view returns the view of the broker for what a plan would like to know and can do without.
func (rt *runtime) view() (*rabbitmqadmin.View, error) {
	client, err := rt.asker()
	if err != nil {
		return nil, err
	}
	return client.View(), nil
}

// see notes that the state has objects.
func (rt *runtime) see(keys ...string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, key := range keys {
		rt.seen[key] = true
	}
}

func (rt *runtime) wasSeen(key string) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.seen[key]
}

// objectKey names a queue or exchange across the run.
func objectKey(kind, vhost, name string) string { return kind + "\x00" + vhost + "\x00" + name }

func (rt *runtime) noteCreated(key string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.created[key] = true
}

func (rt *runtime) forgetCreated(key string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	delete(rt.created, key)
}

func (rt *runtime) wasCreated(key string) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.created[key]
}

// carry keeps the bindings of something deleted for whatever is created under its name later in this run.
func (rt *runtime) carry(key string, bindings []topology.Binding) {
	rt.forgetCreated(key)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if len(bindings) > 0 {
		rt.carried[key] = bindings
	}
}

// takeCarried returns the bindings that something created under this name gets back.
func (rt *runtime) takeCarried(key string) []topology.Binding {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	bindings := rt.carried[key]
	delete(rt.carried, key)
	return bindings
}

// keyedLocks serialises work on objects of one name.
type keyedLocks struct {
	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

// lock takes the locks of all keys, in one order so that two callers never wait for each other, and returns their release.
func (k *keyedLocks) lock(keys ...string) (release func()) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	held := make([]*sync.Mutex, 0, len(keys))
	for _, key := range keys {
		k.mu.Lock()
		if k.locks == nil {
			k.locks = map[string]*sync.Mutex{}
		}
		l, ok := k.locks[key]
		if !ok {
			l = &sync.Mutex{}
			k.locks[key] = l
		}
		k.mu.Unlock()
		l.Lock()
		held = append(held, l)
	}
	return func() {
		for _, l := range held {
			l.Unlock()
		}
	}
}

// identity is what a part of a topic is identified by besides the topic, as far as it is known: what m says first, then
// the provider's defaults. While a default is not known, what the state has is kept, or every queue would be replaced.
func (rt *runtime) identity(m, state *partModel) (vhost, convention, group types.String) {
	if state == nil {
		state = &partModel{VHost: types.StringUnknown(), Convention: types.StringUnknown(), ConsumerGroup: types.StringUnknown()}
	}
	vhost = defaulted(m.VHost, rt.vhost, state.VHost)
	convention = defaulted(m.Convention, rt.convention, state.Convention)
	group = m.ConsumerGroup
	if convention.IsUnknown() || topology.Convention(convention.ValueString()).HasConsumerGroups() {
		group = defaulted(group, rt.consumerGroup, state.ConsumerGroup)
	}
	return vhost, convention, group
}

// plannedVHost is the vhost of a resource that belongs to no topic.
func (rt *runtime) plannedVHost(config types.String, state *types.String, diags *diag.Diagnostics) types.String {
	rt.refuseUnconfigured(diags)
	have := types.StringUnknown()
	if state != nil {
		have = *state
	}
	return defaulted(config, rt.vhost, have)
}

// defaulted is an attribute as it is configured, or else the provider's default, or else what the state has.
func defaulted(configured, fallback, state types.String) types.String {
	switch {
	case !configured.IsNull():
		return configured
	case !fallback.IsUnknown():
		return fallback
	default:
		return state
	}
}

// configured is what the framework hands every resource.
type configured struct{ rt *runtime }

func (c *configured) configure(data any, diags *diag.Diagnostics) {
	if data == nil {
		return // validation runs without a configured provider, and nothing else does
	}
	rt, ok := data.(*runtime)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("The provider handed a resource %T. This is a bug in the provider.", data))
		return
	}
	c.rt = rt
}

// canImport refuses an import while no broker can be read: every one of them, since it would otherwise go on with a state in
// which nothing is, and fail for a reason that is none.
func (c *configured) canImport(diags *diag.Diagnostics) bool {
	if c.rt == nil {
		return true // Terraform moves states in with a provider that is not configured, and refreshes after that
	}
	_, err := c.rt.client()
	switch {
	case errors.Is(err, errUnknown): // the refresh says so
		return true
	case err != nil:
		addError(diags, "RabbitMQ is not configured", err)
	case c.rt.rabbitMQ.unreachable != nil:
		addError(diags, "RabbitMQ does not answer", c.rt.rabbitMQ.unreachable)
	default:
		return true
	}
	return false
}
