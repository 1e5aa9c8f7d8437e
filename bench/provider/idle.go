package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/provider"
)

// envStates names the file with the states that the idle provider gives its resources.
const envStates = "REDELIVER_BENCH_STATES"

// isPlugin reports whether terraform started this program, as its provider.
func isPlugin() bool { return os.Getenv("TF_PLUGIN_MAGIC_COOKIE") != "" }

// serveIdle serves a provider that does nothing.
func serveIdle() error {
	inner, err := provider.NewServer("idle")
	if err != nil {
		return err
	}
	schema, err := inner.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return fmt.Errorf("reading the schemas: %w", err)
	}
	states, err := readStates(os.Getenv(envStates))
	if err != nil {
		return err
	}
	return tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return idle{inner, schema.ResourceSchemas, states} })
}

// idle is a provider with the schemas of the real one. What is planned and applied is what the real one left in the state
// for a resource of the same type and name: how large a state is, is much of what it costs terraform.
type idle struct {
	tfprotov6.ProviderServer
	schemas map[string]*tfprotov6.Schema
	states  map[resourceKey]json.RawMessage
}

// resourceKey names a resource of the estate: by its type, and the topic that it is or belongs to.
type resourceKey struct{ kind, topic string }

// readStates reads what the real provider left in a state.
func readStates(path string) (map[resourceKey]json.RawMessage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the states that the real provider left: %w", err)
	}
	var state struct {
		Resources []struct {
			Type      string `json:"type"`
			Instances []struct {
				Attributes json.RawMessage `json:"attributes"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("reading the states that the real provider left: %w", err)
	}
	out := map[resourceKey]json.RawMessage{}
	for _, r := range state.Resources {
		for _, instance := range r.Instances {
			var name struct{ Topic, Name string }
			if err := json.Unmarshal(instance.Attributes, &name); err != nil {
				return nil, fmt.Errorf("reading the states that the real provider left: %w", err)
			}
			out[resourceKey{r.Type, cmp.Or(name.Topic, name.Name)}] = instance.Attributes
		}
	}
	return out, nil
}

func (idle) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (idle) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (idle) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private, NewIdentity: req.CurrentIdentity}, nil
}

func (p idle) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	planned, err := p.left(req.TypeName, req.ProposedNewState)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: planned, PlannedPrivate: req.PriorPrivate, PlannedIdentity: req.PriorIdentity}, err
}

// left is what the real provider left for a resource; nothing for one that is to be destroyed.
func (p idle) left(kind string, proposed *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, error) {
	value, err := proposed.Unmarshal(p.schemas[kind].ValueType())
	if err != nil || value.IsNull() {
		return proposed, err
	}
	var attributes map[string]tftypes.Value
	if err := value.As(&attributes); err != nil {
		return nil, err
	}
	name, isTopic := attributes["topic"]
	if !isTopic {
		name = attributes["name"]
	}
	var topic string
	if err := name.As(&topic); err != nil {
		return nil, err
	}
	state, ok := p.states[resourceKey{kind, topic}]
	if !ok {
		return nil, fmt.Errorf("the real provider left no %s of topic %q", kind, topic)
	}
	return &tfprotov6.DynamicValue{JSON: state}, nil
}

func (idle) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PlannedState, Private: req.PlannedPrivate, NewIdentity: req.PlannedIdentity}, nil
}
