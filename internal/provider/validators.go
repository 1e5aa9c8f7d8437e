package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// textValidator accepts what check does.
type textValidator struct {
	description string
	// summary is that of the diagnostic.
	summary string
	check   func(string) error
}

func (v textValidator) Description(context.Context) string { return v.description }

func (v textValidator) MarkdownDescription(context.Context) string { return v.description }

func (v textValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := v.check(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, v.summary, sentence(err))
	}
}

// duration accepts what [topology.ParseDuration] reads.
var duration = textValidator{"a duration such as 500ms, 5s, 2m, 1h30m or 1d", "Invalid duration", func(text string) error {
	_, err := topology.ParseDuration(text)
	return err
}}

// durationText is an attribute's list of validators with [duration] in it.
func durationText() []validator.String { return []validator.String{duration} }

// nameOf accepts what RabbitMQ takes as the name of a queue or exchange; kind says of which.
func nameOf(kind string) []validator.String {
	return []validator.String{textValidator{
		"a name that RabbitMQ takes: UTF-8, at most 255 bytes, not starting with amq.", "Invalid name",
		func(name string) error { return topology.ValidateName(kind, name) },
	}}
}

// vhostName accepts what can be a virtual host.
func vhostName() []validator.String {
	return []validator.String{textValidator{"the name of a virtual host", "Invalid vhost", topology.ValidateVHost}}
}

// bindingSource refuses the default exchange, to which nothing can be bound.
func bindingSource() []validator.String {
	return []validator.String{textValidator{"the name of an exchange other than the default one", "Invalid binding", func(name string) error {
		if name == "" {
			return errors.New("the source is empty: every queue is bound to the default exchange by its own name already, and RabbitMQ allows no other binding to it")
		}
		return nil
	}}}
}

// oneOf accepts the given values only.
func oneOf[T ~string](values []T) []validator.String {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return []validator.String{stringvalidator.OneOf(names...)}
}
