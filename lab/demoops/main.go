// Command demoops shows that every alert fires and ends. First promtool runs the test cases
// of the alert rules; promtool is required. Then, if Prometheus is installed, demoops
// starts Prometheus, producers, a store, a consumer and an outbox, and injects faults. It
// prints when each alert fired and ended. A minute in the alert rules lasts a second in the
// demonstration.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// root is the repository's folder, relative to module lab.
const root = ".."

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demoops:", err)
		os.Exit(1)
	}
}

func run() error {
	tests := exec.Command("promtool", "test", "rules", "sqsfifo.tests.yml")
	tests.Dir = filepath.Join(root, "deploy/prometheus")
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	if err := tests.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("neither promtool nor prometheus is installed (Debian: apt-get install prometheus)")
		}
		return err
	}
	fmt.Println("promtool: each of the 20 alerts fires and is silent in its cases")
	if _, err := exec.LookPath("prometheus"); err != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "demoops")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	metrics := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer metrics.Close()
	api, err := startPrometheus(ctx, dir, metrics.Listener.Addr().String())
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	w, err := newWorld(meters)
	if err != nil {
		return err
	}
	defer w.server.Close()
	queues := newCloudWatch(registry)
	return show(ctx, api, map[string]func() error{
		"producer": func() error { return w.causeFaults(ctx) },
		"store":    func() error { return storePart(ctx, meters) },
		"memory":   func() error { return memoryPart(ctx, meters) },
		"consumer": func() error { return consumerPart(ctx, meters) },
		"outbox":   func() error { return outboxPart(ctx, meters, dir) },
		"queues":   func() error { queues.part(); return nil },
	})
}

var duration = regexp.MustCompile(`(\[|offset |for: )([0-9]+)([mh])`)

// faster returns the alert rules with each minute replaced by a second.
func faster(rules string) string {
	rules = duration.ReplaceAllStringFunc(rules, func(text string) string {
		m := duration.FindStringSubmatch(text)
		n, _ := strconv.Atoi(m[2])
		if m[3] == "h" {
			n *= 60
		}
		return m[1] + strconv.Itoa(n) + "s"
	})
	return strings.NewReplacer("age_seconds) > 180", "age_seconds) > 3", "age_seconds) > 600", "age_seconds) > 10", "age_seconds) > 10\n", "age_seconds) > 1\n",
		"oldest_age_seconds) > 60", "oldest_age_seconds) > 1", "message_maximum) > 900", "message_maximum) > 15").Replace(rules)
}

func startPrometheus(ctx context.Context, dir, target string) (api string, err error) {
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/sqsfifo.rules.yml"))
	if err != nil {
		return "", err
	}
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yml]\nscrape_configs:\n- job_name: demo\n  static_configs: [{targets: ['" + target + "']}]\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(faster(string(rules))), 0o600),
		os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600)); err != nil {
		return "", err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := free.Addr().String()
	free.Close()
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	cmd.Stderr = os.Stderr
	return "http://" + address + "/api/v1/alerts", cmd.Start()
}

type scene struct {
	ID    string `json:"id"`
	Cloud int    `json:"cloud"`
}

// world has a producer and its queue, served over HTTP. The method `causeFaults` makes them
// fail.
type world struct {
	queue    *sqstest.Queue
	server   *httptest.Server
	producer *sqsfifo.Producer[scene]
	fail     atomic.Bool // while true, the provenance sink fails
	answers  skewed
	n        atomic.Int64
}

func newWorld(meters *metric.MeterProvider) (*world, error) {
	queue, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
	if err != nil {
		return nil, err
	}
	w := &world{queue: queue, server: httptest.NewServer(sqstest.NewServer(queue))}
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &w.server.URL, Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), HTTPClient: &w.answers,
	})
	config := sceneConfig(w.server.URL+"/"+sqstest.Account+"/scenes.fifo", meters)
	config.Delivery = sqsfifo.Delivery{OnGroupFailure: sqsfifo.GroupFailurePause, BufferEvents: 60}
	config.Telemetry.Provenance = func(sqsfifo.ProvenanceRecord) error {
		if w.fail.Load() {
			return errors.New("no space left")
		}
		return nil
	}
	//sqsfifo:ignore SF020 -- the scenes of a demonstration have no time
	w.producer, err = sqsfifo.NewProducer(client, config)
	return w, err
}

// background sends 20 events per second until ctx ends.
func (w *world) background(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.producer.SendAsync(ctx, scene{ID: strconv.FormatInt(w.n.Add(1), 10)}, func(sqsfifo.Receipt, error) {})
		}
	}
}

var alertLine = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)

func ruleNames() (names []string, err error) {
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/sqsfifo.rules.yml"))
	for _, m := range alertLine.FindAllStringSubmatch(string(rules), -1) {
		names = append(names, m[1])
	}
	return names, err
}

// show runs the parts of the demonstration and waits until each alert has fired and ended.
func show(ctx context.Context, api string, parts map[string]func() error) error {
	expected, err := ruleNames()
	if err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		if _, err := alerts(ctx, api); err == nil {
			break
		} else if tries == 60 {
			return fmt.Errorf("no answer from Prometheus: %w", err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	began := time.Now()
	trouble := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			err := part()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			trouble <- err
		}()
	}

	fired, ended := map[string]time.Duration{}, map[string]time.Duration{}
	for len(ended) < len(expected) {
		if time.Since(began) > 5*time.Minute {
			return fmt.Errorf("after 5 minutes %d of %d alerts have fired and %d ended", len(fired), len(expected), len(ended))
		}
		select {
		case err := <-trouble:
			if err != nil {
				return err
			}
		case <-time.After(500 * time.Millisecond):
		}
		firing, err := alerts(ctx, api)
		if err != nil {
			continue // Prometheus may still be starting
		}
		for _, name := range expected {
			at := time.Since(began).Round(time.Second)
			_, was := fired[name]
			_, over := ended[name]
			switch is := slices.Contains(firing, name); {
			case is && !was:
				fired[name] = at
				fmt.Printf("%5s  %-26s fires\n", at, name)
			case !is && was && !over:
				ended[name] = at
				fmt.Printf("%5s  %-26s ended\n", at, name)
			}
		}
	}
	fmt.Printf("each of %d alerts fired and ended in Prometheus\n", len(expected))
	return nil
}

// causeFaults causes one fault after the other, until ctx ends.
func (w *world) causeFaults(ctx context.Context) error {
	background, stop := context.WithCancel(ctx)
	defer stop()
	go w.background(background)
	time.Sleep(8 * time.Second)
	_, err := w.producer.Send(ctx, scene{ID: "1", Cloud: 99}) // the same key with another body
	_, err2 := w.producer.Send(ctx, scene{ID: ""})            // an event without an ID breaks the contract
	if err == nil || err2 == nil {
		return errors.New("the producer accepted a collision or a violation")
	}
	w.fail.Store(true)
	time.Sleep(time.Second)
	w.fail.Store(false)
	time.Sleep(15 * time.Second)

	w.queue.Inject(sqstest.LoseAnswer(), 100_000)
	doubt, cancel := context.WithTimeout(ctx, 2*time.Second)
	_, err = w.producer.Send(doubt, scene{ID: "in-doubt"})
	cancel()
	if sqsfifo.FateOf(err) != sqsfifo.FateInDoubt {
		return fmt.Errorf("not in doubt: %w", err)
	}
	w.queue.ClearFaults()
	time.Sleep(15 * time.Second)
	w.producer.ResumeAll()

	w.queue.Inject(sqstest.Throttle(), 1_000_000)
	time.Sleep(25 * time.Second)
	w.queue.ClearFaults()
	w.answers.skew.Store(true)
	time.Sleep(faultTime)
	w.answers.skew.Store(false)
	// Let the background goroutine send until ctx ends: the alert on the failure rate ends
	// only after enough successful events.
	<-ctx.Done()
	return nil
}

func alerts(ctx context.Context, api string) (names []string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, api, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var all struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	err = json.NewDecoder(answer.Body).Decode(&all)
	for _, a := range all.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names, err
}
