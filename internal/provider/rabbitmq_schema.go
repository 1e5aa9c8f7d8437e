package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

type rabbitMQModel struct {
	Endpoints      types.List   `tfsdk:"endpoints"`
	AMQPEndpoints  types.List   `tfsdk:"amqp_endpoints"`
	Username       types.String `tfsdk:"username"`
	Password       types.String `tfsdk:"password"`
	Token          types.String `tfsdk:"token"`
	TokenFile      types.String `tfsdk:"token_file"`
	AuthMechanism  types.String `tfsdk:"auth_mechanism"`
	VHost          types.String `tfsdk:"vhost"`
	CACert         types.String `tfsdk:"ca_cert"`
	ClientCert     types.String `tfsdk:"client_cert"`
	ClientKey      types.String `tfsdk:"client_key"`
	Insecure       types.Bool   `tfsdk:"insecure"`
	Headers        types.Map    `tfsdk:"headers"`
	HTTPProxy      types.String `tfsdk:"http_proxy"`
	RequestTimeout types.String `tfsdk:"request_timeout"`
	MaxRetries     types.Int64  `tfsdk:"max_retries"`
}

func rabbitMQSchema() schema.Attribute {
	env := func(attribute, text string) string {
		return text + " Environment variable: `" + rabbitmqadmin.EnvName(attribute) + "`."
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How to reach RabbitMQ. Every attribute can come from the environment instead; what the configuration says comes first. " +
			"A configuration without RabbitMQ resources needs none of it.",
		Attributes: map[string]schema.Attribute{
			"endpoints": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: env("endpoints", "URLs of the management API, such as `https://rabbit.example.com:15671`; a path prefix is kept. "+
					"Where several are given, the next one is used when one cannot be reached. In the environment they are separated by commas."),
			},
			"amqp_endpoints": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: env("amqp_endpoints", "AMQP addresses of the same broker, such as `amqps://rabbit.example.com:5671`, without credentials. Optional: "+
					"with them, a queue's depth is known exactly and at once before it is deleted; without them the broker's statistics are waited for, about 7 seconds in which the queue's bindings are away "+
					"and what is published to its exchanges is not routed to it. A queue that is replaced stays away for another second, so that its consumers are told."),
			},
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("username", "The user, who needs the `management` tag and permissions in the vhost. Goes with `password`; `token` and `token_file` authenticate without either."),
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("password", "The user's password."),
			},
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("token", "An OAuth 2 access token (a JWT) instead of `username` and `password`, for brokers with the plugin `rabbitmq_auth_backend_oauth2`: sent to the "+
					"management API as a bearer token, and over AMQP in the password's place. A value that is written here stays the same for the whole run; a token that expires meanwhile belongs into `token_file`."),
			},
			"token_file": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("token_file", "A file with the access token, instead of `token`. It is read again for every request and connection, so that a token which is renewed in it (by an agent, or by the platform that runs Terraform) is used at once."),
			},
			"auth_mechanism": schema.StringAttribute{
				Optional: true, Validators: oneOf(authMechanisms),
				MarkdownDescription: env("auth_mechanism", "What authenticates AMQP connections (`amqp_endpoints`): `PLAIN` (the default) is the user's password or the token; `EXTERNAL` is the client certificate, for brokers with the "+
					"plugin `rabbitmq_auth_mechanism_ssl`. No version of RabbitMQ's management API authenticates by a certificate: it still takes `username` and `password` or a token. Without any, requests are sent "+
					"without authentication, for a server in front of the API that knows the certificate and adds it."),
			},
			"vhost": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("vhost", "The virtual host of resources that name none. Defaults to `/`."),
			},
			"ca_cert": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("ca_cert", "Certificates, in PEM, of the authorities that may have signed the broker's certificate: the text, or a file's path. Defaults to the system's."),
			},
			"client_cert": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("client_cert", "A client certificate in PEM: the text, or a file's path. Goes with `client_key`."),
			},
			"client_key": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("client_key", "The client certificate's key in PEM: the text, or a file's path."),
			},
			"insecure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: env("insecure", "Accept any certificate the broker shows. Defaults to `false`."),
			},
			"headers": schema.MapAttribute{
				Optional: true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: env("headers", "HTTP headers sent with every request to the management API, such as those a proxy asks for. In the environment: a JSON object."),
			},
			"http_proxy": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("http_proxy", "The proxy, such as `http://proxy.example.com:3128`, that requests to the management API take, with credentials in it where it wants some. Defaults to what "+
					"`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` of the environment say. AMQP connections take no proxy."),
			},
			"request_timeout": schema.StringAttribute{
				Optional: true, Validators: durationText(),
				MarkdownDescription: env("request_timeout", "How long one request may take. Defaults to `"+topology.FormatDuration(rabbitmqadmin.DefaultRequestTimeout)+"`."),
			},
			"max_retries": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: env("max_retries", fmt.Sprintf("How often a request is sent again after a connection error, a 429 or a 5xx answer, "+
					"with growing pauses; `0` is never. Defaults to `%d`.", rabbitmqadmin.DefaultMaxRetries)),
			},
		},
	}
}
