package provider

import (
	"context"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// What a request's context holds can be collected once it is answered: an estate of thousands of resources makes tens of
// thousands of requests of one process.
func TestServerKeepsNoContexts(t *testing.T) {
	t.Parallel()
	server, err := NewServer("test")
	if err != nil {
		t.Fatal(err)
	}
	const requests = 50
	collected := make(chan struct{}, requests)
	for range requests {
		type key struct{}
		value := new([1 << 10]byte)
		goruntime.AddCleanup(value, func(struct{}) { collected <- struct{}{} }, struct{}{})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, value))
		state, err := tfprotov6.NewDynamicValue(tftypes.Object{}, tftypes.NewValue(tftypes.Object{}, map[string]tftypes.Value{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: topicTypeName, CurrentState: &state}); err != nil {
			t.Fatal(err)
		}
		cancel() // as the transport does after the answer
	}
	for i := range requests {
		for deadline := time.Now().Add(30 * time.Second); ; {
			goruntime.GC()
			select {
			case <-collected:
			case <-time.After(10 * time.Millisecond):
				if time.Now().Before(deadline) {
					continue
				}
				t.Fatalf("%d of %d contexts are still held", requests-i, requests)
			}
			break
		}
	}
	goruntime.KeepAlive(server)
}

// A context that was released has ended, and those made from it with it.
func TestReleasedContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, 1), time.Now().Add(time.Hour))
	defer cancel()
	var kept, child context.Context
	var stop context.CancelFunc
	got, err := released(ctx, "question", func(ctx context.Context, req string) (string, error) {
		kept = ctx
		child, stop = context.WithCancel(ctx)
		if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil || ctx.Value(key{}) != 1 {
			t.Error("during the request it is not the request's context")
		}
		return req + " answered", nil
	})
	if err != nil || got != "question answered" {
		t.Fatal(got, err)
	}
	if kept.Err() == nil || kept.Value(key{}) != nil {
		t.Error("after the request it still is the request's context")
	}
	stop()
	if child.Err() == nil {
		t.Error("a context that was made of it did not end with its own cancel function")
	}
}

// While nobody asked Terraform for logs the provider writes none; who asked gets them.
func TestQuietLogs(t *testing.T) {
	names := []string{"TF_LOG", "TF_LOG_PROVIDER", "TF_LOG_SDK", "TF_LOG_PROVIDER_REDELIVER"}
	for name, c := range map[string]struct{ given, want [4]string }{
		"nothing asked":      {want: [4]string{2: "OFF", 3: "OFF"}},
		"all logs":           {given: [4]string{"trace"}, want: [4]string{"trace"}},
		"providers' logs":    {given: [4]string{1: "debug"}, want: [4]string{1: "debug"}},
		"the SDK's level":    {given: [4]string{2: "warn"}, want: [4]string{2: "warn", 3: "OFF"}},
		"only the provider":  {given: [4]string{3: "info"}, want: [4]string{2: "OFF", 3: "info"}},
		"both set by a user": {given: [4]string{2: "warn", 3: "info"}, want: [4]string{2: "warn", 3: "info"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, variable := range names {
				t.Setenv(variable, c.given[i])
			}
			if err := quietLogs(); err != nil {
				t.Fatal(err)
			}
			for i, variable := range names {
				if got := os.Getenv(variable); got != c.want[i] {
					t.Errorf("%s is %q, want %q", variable, got, c.want[i])
				}
			}
		})
	}
}
