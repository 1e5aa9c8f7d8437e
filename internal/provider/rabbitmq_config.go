package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// configureRabbitMQ reads the configuration and the environment. With a value
// that is not known yet the client stays away and planning goes on without it.
func (rt *runtime) configureRabbitMQ(ctx context.Context, object types.Object, getenv func(string) string, version string) diag.Diagnostics {
	var diags diag.Diagnostics
	if object.IsUnknown() {
		rt.rabbitMQ.unknown = true
		rt.vhost = types.StringUnknown()
		return diags
	}
	model := rabbitMQModel{}
	if !object.IsNull() {
		if diags.Append(object.As(ctx, &model, basetypes.ObjectAsOptions{})...); diags.HasError() {
			return diags
		}
	}
	src := source{ctx: ctx, getenv: getenv, diags: &diags}
	cfg := src.config(model)
	cfg.UserAgent = "terraform-provider-redeliver/" + version
	cfg.Logf = func(ctx context.Context, msg string, fields map[string]any) { tflog.Debug(ctx, msg, fields) }
	if model.VHost.IsUnknown() {
		rt.vhost = types.StringUnknown()
	} else if vhost := src.text("vhost", model.VHost); vhost != "" {
		rt.vhost = types.StringValue(vhost)
	}
	if diags.HasError() || src.unknown {
		rt.rabbitMQ.unknown = src.unknown
		return diags
	}
	if len(cfg.Endpoints) == 0 {
		return diags // said when a RabbitMQ resource needs it
	}
	if cfg.Username == "" && cfg.Token == nil && !cfg.External {
		src.fail("username", "no user is named, and the provider assumes none: set username and password, or token, or token_file")
		return diags
	}
	client := src.client(cfg)
	if client == nil {
		return diags
	}
	rt.rabbitMQ.client = client
	rt.rabbitMQ.unreachable = src.ping(client)
	return diags
}

// config is what the client needs, the default vhost aside, which is none of its business.
func (s *source) config(model rabbitMQModel) rabbitmqadmin.Config {
	cfg := rabbitmqadmin.Config{
		Endpoints:      s.list("endpoints", model.Endpoints),
		AMQPEndpoints:  s.list("amqp_endpoints", model.AMQPEndpoints),
		External:       s.external(model.AuthMechanism),
		Proxy:          s.proxy(model.HTTPProxy),
		Headers:        s.headers("headers", model.Headers),
		RequestTimeout: s.duration("request_timeout", model.RequestTimeout, rabbitmqadmin.DefaultRequestTimeout),
		MaxRetries:     s.number("max_retries", model.MaxRetries, rabbitmqadmin.DefaultMaxRetries),
		TLS:            s.tls(model),
	}
	s.identity(model, &cfg)
	if cfg.MaxRetries == 0 {
		cfg.MaxRetries = -1 // the client's zero value is its default
	}
	return cfg
}

// client makes the client. What it refuses is said of the attribute without which it would not.
func (s *source) client(cfg rabbitmqadmin.Config) *rabbitmqadmin.Client {
	endpoints := rabbitmqadmin.Config{Endpoints: cfg.Endpoints}
	amqp := endpoints
	amqp.AMQPEndpoints = cfg.AMQPEndpoints
	headers := amqp
	headers.Headers = cfg.Headers
	proxy := headers
	proxy.Proxy = cfg.Proxy
	external := proxy
	external.External, external.TLS = cfg.External, cfg.TLS
	for _, part := range []struct {
		attribute string
		cfg       rabbitmqadmin.Config
	}{{"endpoints", endpoints}, {"amqp_endpoints", amqp}, {"headers", headers}, {"http_proxy", proxy}, {"auth_mechanism", external}} {
		if _, err := rabbitmqadmin.New(part.cfg); err != nil {
			s.fail(part.attribute, err.Error())
			return nil
		}
	}
	client, err := rabbitmqadmin.New(cfg)
	if err != nil {
		s.fail(s.who, err.Error())
		return nil
	}
	return client
}

// ping asks the broker who it is, so that what is wrong with the configuration is said here, once. A broker that does
// not answer, which it returns, may be one that this very configuration is about to start: that is said by the first
// resource that needs it.
func (s *source) ping(client *rabbitmqadmin.Client) (unreachable error) {
	_, err := client.Ping(s.ctx)
	var answer *rabbitmqadmin.Error
	switch {
	case errors.Is(err, rabbitmqadmin.ErrCredentials), errors.Is(err, rabbitmqadmin.ErrPermission), errors.Is(err, rabbitmqadmin.ErrToken):
		s.fail(s.who, err.Error())
	case errors.As(err, &answer) && answer.Status != 0 && answer.Status != http.StatusTooManyRequests && answer.Status < http.StatusInternalServerError:
		s.fail("endpoints", err.Error())
	default:
		return err
	}
	return nil
}

// whichAttribute says where to look when no broker answered.
func whichAttribute(err error) string {
	var unreachable *rabbitmqadmin.UnreachableError
	if !errors.As(err, &unreachable) {
		return ""
	}
	attribute := "endpoints"
	if len(unreachable.Endpoints) > 0 && strings.HasPrefix(unreachable.Endpoints[0], "amqp") {
		attribute = "amqp_endpoints"
	}
	return fmt.Sprintf("\nThe addresses are the provider's rabbitmq.%s (or the environment variable %s).", attribute, rabbitmqadmin.EnvName(attribute))
}

// source reads attributes from the configuration or, where it leaves them out,
// from the environment, and collects what is wrong with them.
type source struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Configure
	getenv func(string) string
	diags  *diag.Diagnostics
	// unknown is set when any attribute is not known yet.
	unknown bool
	// who is the attribute that says as whom the provider works.
	who string
}

func (s *source) fail(attribute, why string) {
	s.diags.AddAttributeError(path.Root("rabbitmq").AtName(attribute), "Invalid RabbitMQ configuration",
		fmt.Sprintf("rabbitmq.%s (or the environment variable %s): %s.", attribute, rabbitmqadmin.EnvName(attribute), why))
}

func (s *source) text(attribute string, value types.String) string {
	if value.IsUnknown() {
		s.unknown = true
		return ""
	}
	if !value.IsNull() {
		return value.ValueString()
	}
	return s.getenv(rabbitmqadmin.EnvName(attribute))
}

func (s *source) list(attribute string, value types.List) []string {
	if value.IsNull() {
		var list []string
		for _, item := range strings.Split(s.getenv(rabbitmqadmin.EnvName(attribute)), ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list
	}
	var items []types.String
	if value.IsUnknown() || value.ElementsAs(s.ctx, &items, true).HasError() {
		s.unknown = true
		return nil
	}
	var list []string
	for _, item := range items {
		if item.IsUnknown() {
			s.unknown = true
			return nil
		}
		list = append(list, item.ValueString())
	}
	return list
}

func (s *source) headers(attribute string, value types.Map) http.Header {
	headers := http.Header{}
	if value.IsNull() {
		text := s.getenv(rabbitmqadmin.EnvName(attribute))
		if text == "" {
			return nil
		}
		var fields map[string]string
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			s.fail(attribute, `it is not a JSON object of strings, such as {"X-Proxy-Token":"..."}`)
			return nil
		}
		for name, field := range fields {
			headers.Set(name, field)
		}
		return headers
	}
	if value.IsUnknown() {
		s.unknown = true
		return nil
	}
	for name, element := range value.Elements() {
		field, ok := element.(types.String)
		if !ok || field.IsUnknown() {
			s.unknown = true
			return nil
		}
		headers.Set(name, field.ValueString())
	}
	return headers
}

func (s *source) duration(attribute string, value types.String, otherwise time.Duration) time.Duration {
	text := s.text(attribute, value)
	if text == "" {
		return otherwise
	}
	d, err := topology.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("it is zero, and a request takes time")
	}
	if err != nil {
		s.fail(attribute, err.Error())
	}
	return d
}

func (s *source) number(attribute string, value types.Int64, otherwise int) int {
	if value.IsUnknown() {
		s.unknown = true
		return otherwise
	}
	n := int64(otherwise)
	if !value.IsNull() {
		n = value.ValueInt64()
	} else if text := s.getenv(rabbitmqadmin.EnvName(attribute)); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 32); err != nil {
			s.fail(attribute, fmt.Sprintf("%q is not a number", text))
		}
	}
	if n < 0 || n > 100 {
		s.fail(attribute, fmt.Sprintf("%d is not between 0 and 100", n))
	}
	return int(n)
}

func (s *source) flag(attribute string, value types.Bool) bool {
	if value.IsUnknown() {
		s.unknown = true
		return false
	}
	if !value.IsNull() {
		return value.ValueBool()
	}
	text := s.getenv(rabbitmqadmin.EnvName(attribute))
	if text == "" {
		return false
	}
	flag, err := strconv.ParseBool(text)
	if err != nil {
		s.fail(attribute, fmt.Sprintf("%q is neither true nor false", text))
	}
	return flag
}
