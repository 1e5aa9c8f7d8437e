package rabbitmq_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestExpCrash(t *testing.T) {
	b := brokertest.Dedicated(t, brokertest.Options{})
	w := newWorldOn(t, b)
	w.publish(ids(2000)...)
	l := w.consume(redeliver.Config{Workers: 4}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		time.Sleep(2 * time.Millisecond)
		if os.Getenv("EXP_REJECT") != "" && m.ID[len(m.ID)-1] == '3' {
			return redeliver.Reject(errBoom)
		}
		if os.Getenv("EXP_RETRY") != "" && m.ID[len(m.ID)-1] == '7' && m.RetryCount < 2 {
			return redeliver.Retry(errBoom)
		}
		return redeliver.Ack()
	})
	l.await(redeliver.EventAcked, 300)
	b.Kill()
	l.await(redeliver.EventDisconnected, 1)
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		time.Sleep(time.Second)
		if l.Stats().Acked > 1000 {
			break
		}
	}
	t.Logf("%+v", l.Stats())
	os.WriteFile("/tmp/wbr/dir", []byte(b.Dir()), 0o644)
	for range 120 {
		if _, err := os.Stat("/tmp/wbr/go"); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	text, _ := os.ReadFile(filepath.Join(b.Dir(), "console.log"))
	for _, line := range strings.Split(string(text), "\n") {
		if strings.Contains(line, "orders") && !strings.Contains(line, "redeliver:orders") || strings.Contains(line, "fifo") || strings.Contains(line, "[error]") || strings.Contains(line, "starting up") || strings.Contains(line,"Starting RabbitMQ") {
			t.Log(line)
		}
	}
	_, a := brokertest.Request(t, b, "GET", "/api/queues/"+w.vhost, nil)
	t.Log(string(a)[:min(len(a), 2000)])
}
