package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// The resources of the community provider for RabbitMQ (cyrilgdn/rabbitmq) that a moved block may name as the source.
const (
	communityProvider = "/rabbitmq" // what its address ends in, in whatever registry and namespace
	communityQueue    = "rabbitmq_queue"
	communityExchange = "rabbitmq_exchange"
	communityBinding  = "rabbitmq_binding"
)

var (
	_ resource.ResourceWithMoveState = (*topicResource)(nil)
	_ resource.ResourceWithMoveState = (*deadEndResource)(nil)
	_ resource.ResourceWithMoveState = (*exchangeResource)(nil)
	_ resource.ResourceWithMoveState = (*bindingResource)(nil)
)

// communityState is the state of one of its resources, as far as it says which object that is.
type communityState struct {
	Name            string            `json:"name"`
	VHost           string            `json:"vhost"`
	Settings        []communityArgs   `json:"settings"`
	Source          string            `json:"source"`
	Destination     string            `json:"destination"`
	DestinationType string            `json:"destination_type"`
	RoutingKey      string            `json:"routing_key"`
	Arguments       map[string]string `json:"arguments"`
	ArgumentsJSON   string            `json:"arguments_json"`
}

// communityArgs are arguments, whose types only the JSON keeps.
type communityArgs struct {
	Arguments     map[string]string `json:"arguments"`
	ArgumentsJSON string            `json:"arguments_json"`
}

func (a communityArgs) arguments() (topology.Arguments, error) {
	args := topology.Arguments{}
	for key, value := range a.Arguments {
		args[key] = value
	}
	if a.ArgumentsJSON != "" {
		if err := json.Unmarshal([]byte(a.ArgumentsJSON), &args); err != nil {
			return nil, fmt.Errorf("its arguments_json cannot be read: %w", err)
		}
	}
	return args, nil
}

// mover moves the state of one of the community provider's resources. What is moved is no more than which object it is:
// the state is that of an import, and the refresh that follows reads everything else from the broker.
func mover(from string, target resource.ResourceWithImportState, form identityForm, id func(communityState) (importID, error)) []resource.StateMover {
	return []resource.StateMover{{StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		if req.SourceTypeName != from || !strings.HasSuffix(req.SourceProviderAddress, communityProvider) {
			return // Terraform says that this provider does not know the source
		}
		var source communityState
		err := errors.New("there is none")
		if req.SourceRawState != nil {
			err = json.Unmarshal(req.SourceRawState.JSON, &source)
		}
		var text importID
		if err == nil {
			text, err = id(source)
		}
		if err != nil {
			addError(&resp.Diagnostics, "Could not move the state", fmt.Errorf("state of %s %q: %w.\n"+
				"Move it in by hand: a removed block with destroy = false for the one, an import block for the other", from, source.Name, err))
			return
		}
		imported := resource.ImportStateResponse{State: tfsdk.State{Raw: resp.TargetState.Raw, Schema: resp.TargetState.Schema}}
		target.ImportState(ctx, resource.ImportStateRequest{ID: text.String()}, &imported)
		if resp.Diagnostics.Append(imported.Diagnostics...); resp.Diagnostics.HasError() {
			return
		}
		resp.TargetState = imported.State
		form.identify(ctx, &resp.TargetState, resp.TargetIdentity, &resp.Diagnostics)
	}}}
}

// queueOf tells which topic's queue in a role a queue is. Its convention is the one that its name and arguments fit best:
// a moved block cannot say it.
func queueOf(role topology.Role) func(communityState) (importID, error) {
	return func(source communityState) (importID, error) {
		var args topology.Arguments
		if len(source.Settings) > 0 {
			var err error
			if args, err = source.Settings[0].arguments(); err != nil {
				return importID{}, err
			}
		}
		id, ok := topology.GuessIdentity(role, source.VHost, source.Name, args)
		if !ok {
			return importID{}, fmt.Errorf("no convention gives a queue of role %q this name, so that its topic is not known", role)
		}
		return idOf(id, ""), nil
	}
}

func (r *topicResource) MoveState(context.Context) []resource.StateMover {
	return mover(communityQueue, r, topicForm, queueOf(topology.RoleWork))
}

func (r *deadEndResource) MoveState(context.Context) []resource.StateMover {
	return mover(communityQueue, r, deadEndForm, queueOf(r.role))
}

func (r *exchangeResource) MoveState(context.Context) []resource.StateMover {
	return mover(communityExchange, r, exchangeForm, func(source communityState) (importID, error) {
		return importID{segments: []string{source.VHost, source.Name}}, nil
	})
}

func (r *bindingResource) MoveState(context.Context) []resource.StateMover {
	return mover(communityBinding, r, bindingForm, func(source communityState) (importID, error) {
		args, err := communityArgs{source.Arguments, source.ArgumentsJSON}.arguments()
		id := importID{
			segments: []string{source.VHost, source.Source, source.DestinationType, source.Destination},
			params:   map[string]string{"routing_key": source.RoutingKey},
		}
		if len(args) > 0 {
			id.params["arguments"] = topology.CanonicalJSON(args)
		}
		return id, err
	})
}
