package provider

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// Serve serves the provider to Terraform until Terraform ends it. With debug it waits for a debugger, and prints how Terraform
// attaches to this process.
func Serve(version string, debug bool) error {
	if err := quietLogs(); err != nil {
		return err
	}
	inner, err := NewServer(version)
	if err != nil {
		return err
	}
	var options []tf6server.ServeOpt
	if debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	return tf6server.Serve(Address, func() tfprotov6.ProviderServer { return inner }, options...)
}

// quietLogs turns logs off that nobody reads: unless it is told otherwise a provider writes its SDK's whole trace to Terraform,
// which drops it. That is a quarter of the CPU time of a plan.
func quietLogs() error {
	for _, name := range []string{"TF_LOG", "TF_LOG_PROVIDER"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_REDELIVER"} {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, "OFF"); err != nil {
			return fmt.Errorf("turning the log off: %w", err)
		}
	}
	return nil
}

// NewServer makes the server that answers Terraform.
func NewServer(version string) (tfprotov6.ProviderServer, error) {
	inner, ok := providerserver.NewProtocol6(New(version)())().(frameworkServer)
	if !ok {
		return nil, fmt.Errorf("the plugin framework's server has no lists or no actions: this provider was built with a version of it that it does not fit")
	}
	return server{inner}, nil
}

// frameworkServer is what the plugin framework's server can do.
type frameworkServer interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

// server is the framework's, which is given contexts that it may keep: it keeps the context of every request until the process
// ends, and with it 10 to 20 KB of loggers and of the connection's state (terraform-plugin-framework 1.19.0, the cancel
// functions of its server). A plan of 4,000 resources makes 16,000 requests.
type server struct{ frameworkServer }

// The requests that are made for every resource.

func (s server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return released(ctx, req, s.frameworkServer.ValidateResourceConfig)
}

func (s server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return released(ctx, req, s.frameworkServer.UpgradeResourceState)
}

func (s server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return released(ctx, req, s.frameworkServer.UpgradeResourceIdentity)
}

func (s server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return released(ctx, req, s.frameworkServer.ReadResource)
}

func (s server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return released(ctx, req, s.frameworkServer.PlanResourceChange)
}

func (s server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return released(ctx, req, s.frameworkServer.ApplyResourceChange)
}

func (s server) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return released(ctx, req, s.frameworkServer.ImportResourceState)
}

func (s server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return released(ctx, req, s.frameworkServer.ReadDataSource)
}

func (s server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	return released(ctx, req, s.frameworkServer.CallFunction)
}

// released answers a request with a context that holds nothing any more once the answer is there.
func released[Req, Resp any](ctx context.Context, req Req, answer func(context.Context, Req) (Resp, error)) (Resp, error) {
	own := &releasedContext{}
	own.of.Store(&ctx)
	defer own.of.Store(&ended)
	return answer(own, req)
}

// releasedContext is another context until it is released, and one that has ended from then on.
type releasedContext struct {
	of atomic.Pointer[context.Context]
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (c *releasedContext) now() context.Context        { return *c.of.Load() }
func (c *releasedContext) Deadline() (time.Time, bool) { return c.now().Deadline() }
func (c *releasedContext) Done() <-chan struct{}       { return c.now().Done() }
func (c *releasedContext) Err() error                  { return c.now().Err() }
func (c *releasedContext) Value(key any) any           { return c.now().Value(key) }
