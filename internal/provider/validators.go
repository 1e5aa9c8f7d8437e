package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// stringValidator shortens the framework's name where lists of them are written.
type stringValidator = validator.String

// oneOf accepts the given values only.
func oneOf[T ~string](values []T) []validator.String {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return []validator.String{stringvalidator.OneOf(names...)}
}

// durationValidator accepts what [topology.ParseDuration] reads.
type durationValidator struct{}

func (durationValidator) Description(context.Context) string {
	return "a duration such as 500ms, 5s, 2m, 1h30m or 1d"
}

func (v durationValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (durationValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := topology.ParseDuration(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid duration", sentence(err))
	}
}

// nameValidator accepts what RabbitMQ takes as the name of a queue or exchange.
type nameValidator struct{ kind string }

func (v nameValidator) Description(context.Context) string {
	return "a name that RabbitMQ takes: UTF-8, at most 255 bytes, not starting with amq."
}

func (v nameValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v nameValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if err := topology.ValidateName(v.kind, req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid name", sentence(err))
	}
}
