package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redeliver/terraform-provider-redeliver/examples/consumer/internal/provision"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

const waitTimeout = time.Minute

func pack(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// TestService runs the whole service against a broker.
func TestService(t *testing.T) {
	t.Parallel()
	vhost := provision.NewVHost(t)
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	shipped, booked := make(chan order, 10), make(chan invoice, 10)
	var attempts atomic.Int32
	s := service{
		ordersManifest: vhost.Topic("orders"), invoicesManifest: vhost.Topic("invoices"),
		url: vhost.URL("^(orders|invoices)$"), log: slog.New(slog.DiscardHandler),
		telemetry: redeliverotel.Config{
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		},
		ship: func(_ context.Context, o order) error {
			if attempts.Add(1) == 1 {
				return errors.New("the warehouse does not answer") // retried
			}
			shipped <- o
			return nil
		},
		book: func(_ context.Context, i invoice) error { booked <- i; return nil },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, shutdown := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, listener) }()

	vhost.Publish("orders", amqp091.Publishing{MessageId: "o1", Body: []byte(`{"id": "o1"}`)})
	vhost.Publish("invoices",
		amqp091.Publishing{MessageId: "i1", Body: pack(`{"number": 7, "cents": 100}`), ContentEncoding: "gzip"},
		amqp091.Publishing{MessageId: "i2", Body: []byte("not gzip"), ContentEncoding: "gzip"},
		amqp091.Publishing{MessageId: "i3", Body: []byte(`{"number": 8, "cents": -1}`)})
	if got := receive(t, shipped); got.ID != "o1" {
		t.Errorf("shipped %+v", got)
	}
	if got := receive(t, booked); got.Number != 7 {
		t.Errorf("booked %+v", got)
	}
	vhost.WaitDepth("invoices-dlq", 2)

	response, err := http.Get("http://" + listener.Addr().String() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var health redeliver.Health
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil || response.StatusCode != http.StatusOK || len(health.Parts) != 2 {
		t.Errorf("readyz: %d, %+v, %v", response.StatusCode, health, err)
	}

	shutdown()
	if err := receive(t, done); err != nil {
		t.Error(err)
	}
	vhost.WaitDepth("orders", 0)
	vhost.WaitDepth("invoices", 0)
	if got := counted(t, reader, "redeliver.acked"); got != 2 {
		t.Errorf("acked %d", got)
	}
	if got := counted(t, reader, "redeliver.dead_lettered"); got != 2 {
		t.Errorf("dead-lettered %d", got)
	}
	var names []string
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
	}
	slices.Sort(names)
	if want := []string{"process invoices", "process invoices", "process invoices", "process orders", "process orders"}; !slices.Equal(names, want) {
		t.Errorf("spans %q", names)
	}
}

func receive[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(waitTimeout):
		t.Fatal("nothing came")
	}
	return value
}

// counted is the sum of a counter over all queues.
func counted(t *testing.T, reader *sdkmetric.ManualReader, name string) (sum int64) {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if data, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, point := range data.DataPoints {
					sum += point.Value
				}
			}
		}
	}
	return sum
}

func TestCodec(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		msg  redeliver.Message
		want int
		says string
	}{
		"plain":            {redeliver.Message{Body: []byte(`{"number": 7}`)}, 7, ""},
		"gzip":             {redeliver.Message{Body: pack(`{"number": 7}`), ContentEncoding: "gzip"}, 7, ""},
		"not gzip":         {redeliver.Message{Body: []byte(`{"number": 7}`), ContentEncoding: "gzip"}, 0, "unpacking"},
		"cut off":          {redeliver.Message{Body: pack(`{"number": 7}`)[:20], ContentEncoding: "gzip"}, 0, "unpacking"},
		"too long":         {redeliver.Message{Body: pack(strings.Repeat(" ", maxInvoice+1)), ContentEncoding: "gzip"}, 0, "more than"},
		"another encoding": {redeliver.Message{Body: []byte("x"), ContentEncoding: "br"}, 0, "br"},
		"not JSON":         {redeliver.Message{Body: []byte("{")}, 0, "JSON"},
	} {
		got, err := packedJSON[invoice]{}.Decode(&tt.msg)
		if err == nil && tt.says != "" || err != nil && (tt.says == "" || !strings.Contains(err.Error(), tt.says)) || got.Number != tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	calls := 0
	answers := []redeliver.Outcome{redeliver.Retry(nil), redeliver.Ack(), redeliver.Reject(nil)}
	handler := redeliver.Chain(redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome {
		calls++
		return answers[calls-1]
	}), new(once).middleware)
	for i, want := range []redeliver.OutcomeKind{redeliver.OutcomeRetry, redeliver.OutcomeAck, redeliver.OutcomeAck} {
		if got := handler.Handle(t.Context(), &redeliver.Message{ID: "m1"}).Kind(); got != want {
			t.Errorf("time %d: %s, want %s", i, got, want)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

func TestMissingManifest(t *testing.T) {
	t.Parallel()
	s := service{ordersManifest: "absent.json", log: slog.New(slog.DiscardHandler)}
	if err := s.run(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
