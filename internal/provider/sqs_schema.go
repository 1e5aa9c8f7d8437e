package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
)

type sqsConfigModel struct {
	Region       types.String `tfsdk:"region"`
	Profile      types.String `tfsdk:"profile"`
	Endpoint     types.String `tfsdk:"endpoint"`
	AccessKey    types.String `tfsdk:"access_key"`
	SecretKey    types.String `tfsdk:"secret_key"`
	SessionToken types.String `tfsdk:"session_token"`
	AssumeRole   types.Object `tfsdk:"assume_role"`
	AccountID    types.String `tfsdk:"account_id"`
	MaxRetries   types.Int64  `tfsdk:"max_retries"`
	DefaultTags  types.Map    `tfsdk:"default_tags"`
}

type assumeRoleModel struct {
	RoleARN     types.String `tfsdk:"role_arn"`
	SessionName types.String `tfsdk:"session_name"`
	ExternalID  types.String `tfsdk:"external_id"`
}

func sqsSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How to reach Amazon SQS. What it leaves out comes from where the AWS SDK looks for it: environment variables such as `AWS_REGION`, `AWS_PROFILE` and `AWS_ACCESS_KEY_ID`, the shared configuration files, and for " +
			"credentials what the machine has (a container's or an instance's role). A configuration without SQS resources needs none of it, and then AWS is not touched at all.",
		Attributes: map[string]schema.Attribute{
			"region": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The region, such as `eu-west-1`. Defaults to `AWS_REGION`, or the profile's. Queues of several regions take several providers (`alias`).",
			},
			"profile": schema.StringAttribute{
				Optional: true, MarkdownDescription: "A profile of the shared configuration files. Defaults to `AWS_PROFILE`.",
			},
			"endpoint": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The address of SQS where it is not the region's own: a VPC endpoint, or an emulator, which needs `account_id`. Defaults to `AWS_ENDPOINT_URL_SQS`. It is part of the URLs in manifests.",
			},
			"access_key": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "An access key's id. Goes with `secret_key`. Defaults to the credentials that the AWS SDK finds.",
			},
			"secret_key": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "The access key's secret.",
			},
			"session_token": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "The session token of temporary credentials.",
			},
			"assume_role": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "A role to assume with the credentials. Without it the role of the profile is, where that has one.",
				Attributes: map[string]schema.Attribute{
					"role_arn":     schema.StringAttribute{Required: true, MarkdownDescription: "The role's ARN."},
					"session_name": schema.StringAttribute{Optional: true, MarkdownDescription: "The session's name, which CloudTrail shows. Defaults to `terraform-provider-redeliver`."},
					"external_id":  schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: "The external id that the role asks for."},
				},
			},
			"account_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The id of the account that the queues are in, as text of 12 digits. Manifests have it in URLs and ARNs. Defaults to what the credentials say, or STS (`GetCallerIdentity`), which is asked once a run. " +
					"Emulators need it, and take `000000000000`.",
			},
			"max_retries": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(0, 100)},
				MarkdownDescription: fmt.Sprintf("How often a request is sent again after a connection error, a throttled or a 5xx answer, with growing pauses; `0` is never. Defaults to `AWS_MAX_ATTEMPTS` less one, or else `%d`.", sqsadmin.DefaultMaxRetries),
			},
			"default_tags": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, MarkdownDescription: "Tags that every queue gets; a resource's own `tags` come first.",
			},
		},
	}
}
