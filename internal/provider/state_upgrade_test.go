package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// stateVHost is the vhost that the kept states are about: manifests have it in their fingerprint.
const stateVHost = "redeliver-state-vhost"

// TestStatesOfEarlierVersions has the provider read the states that its earlier versions wrote, all of their resources,
// and finds nothing to change. Every directory below testdata/state is one version, with a configuration and the state that
// was applied from it; none of them is ever changed.
func TestStatesOfEarlierVersions(t *testing.T) {
	b := setup(t)
	b.vhost = stateVHost
	path := "/api/vhosts/" + b.vhost
	b.request("PUT", "vhosts/%s", map[string]any{})
	t.Cleanup(func() { brokertest.Request(t, b.broker, "DELETE", path, nil) })
	b.request("PUT", "permissions/%s/"+b.broker.Username(), map[string]string{"configure": ".*", "write": ".*", "read": ".*"})
	versions, err := filepath.Glob("testdata/state/*")
	if err != nil || len(versions) == 0 {
		t.Fatalf("no states: %v", err)
	}
	for _, version := range versions {
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(version, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		config, state := b.block(fmt.Sprintf("amqp_endpoints = [%q]", b.amqpEndpoint()))+read("main.tf"), read("state.json")
		upgradeStates(t, state)
		// The objects are made by this version; what the old one had is in its state.
		now := b.commandLine(config)
		now.apply()
		then := b.commandLine(config)
		then.write("terraform.tfstate", state)
		expect(t, then.plan("-detailed-exitcode"), "No changes")
		now.apply("-destroy")
	}
}

// upgradeStates reads every resource of a state through the protocol.
func upgradeStates(t *testing.T, state string) {
	t.Helper()
	var kept struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				SchemaVersion int64           `json:"schema_version"`
				Attributes    json.RawMessage `json:"attributes"`
			} `json:"instances"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(state), &kept); err != nil {
		t.Fatal(err)
	}
	p := newProtocol(t)
	seen := map[string]bool{}
	for _, r := range kept.Resources {
		for _, instance := range r.Instances {
			got, err := p.server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
				TypeName: r.Type, Version: instance.SchemaVersion, RawState: &tfprotov6.RawState{JSON: instance.Attributes},
			})
			if err != nil {
				t.Fatal(err)
			}
			p.noErrors(got.Diagnostics)
			fields, _ := p.decoded(p.resourceType(r.Type), got.UpgradedState).(map[string]any)
			if id, _ := fields["id"].(string); id == "" {
				t.Errorf("the state of %s.%s has no id any more", r.Type, r.Name)
			}
			seen[r.Type] = true
		}
	}
	for name := range p.schemas.ResourceSchemas {
		if !seen[name] {
			t.Logf("no state of a %s is kept: this version had none", name)
		}
	}
}
