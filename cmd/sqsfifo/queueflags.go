package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// queueFlags has the flags that name a queue, and the endpoint, region and profile to reach
// it.
type queueFlags struct {
	QueueURL    string `name:"queue-url" placeholder:"URL" help:"URL of the FIFO queue (default: a fake queue in this process)."`
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Address of SQS, if it is not that of AWS."`
	Region      string `placeholder:"NAME" help:"AWS region (default: that of the queue's URL or of the AWS configuration)."`
	Profile     string `placeholder:"NAME" help:"Profile of the AWS configuration."`
}

// target is a queue and its client.
type target struct {
	client        sqsfifo.Client
	full          *sqs.Client // the SDK's client; nil for the fake queue in this process
	url           string
	arn           string // the queue's ARN, or "" if it is unknown
	deduplication sqsfifo.Deduplication
	note          string // a note about the queue, for people
}

// open returns the queue that the flags name. Without --queue-url, or if `dry` is true, it
// returns a new fake queue in this process. Otherwise open also reads the queue's
// attributes (see inspect).
func (f queueFlags) open(ctx context.Context, dry bool) (target, error) {
	if f.QueueURL == "" || dry {
		if f.EndpointURL != "" && !dry {
			return target{}, errors.New("--endpoint-url needs --queue-url: name the queue at that address")
		}
		queue, err := sqstest.NewQueue(sqstest.Config{})
		if err != nil {
			return target{}, err
		}
		return target{client: queue, url: queue.URL(), arn: queue.ARN(), note: "no --queue-url: the events go to a fake queue in this process, which ends with it"}, nil
	}
	client, err := f.client(ctx)
	if err != nil {
		return target{}, err
	}
	t := target{client: client, full: client, url: f.QueueURL}
	return t, t.inspect(ctx)
}

// client returns a client for --queue-url.
func (f queueFlags) client(ctx context.Context) (*sqs.Client, error) {
	u, err := url.Parse(f.QueueURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--queue-url: %q is not a URL; the AWS CLI shows that of a queue: aws sqs get-queue-url --queue-name NAME", f.QueueURL)
	}
	endpoint := f.EndpointURL
	if endpoint == "" && onLoopback(u.Host) {
		endpoint = u.Scheme + "://" + u.Host
	}
	var options []func(*config.LoadOptions) error
	region := f.Region
	if region == "" {
		region = queueurl.Region(f.QueueURL)
	}
	e, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("--endpoint-url: %q is not a URL", endpoint)
	}
	if endpoint != "" && onLoopback(e.Host) { // a fake queue on this machine needs no credentials
		if region == "" {
			region = "us-east-1"
		}
		options = append(options, config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		})))
	}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	if f.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(f.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region: set --region, AWS_REGION or the region of the profile")
	}
	return sqsfifo.NewClient(cfg, func(o *sqs.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}

// inspect reads the queue's attributes. It checks that the queue is suitable, and decides
// whether the producer or SQS computes the deduplication ID. Without the permission
// sqs:GetQueueAttributes, it checks nothing and returns nil.
func (t *target) inspect(ctx context.Context) error {
	queue, err := sqsfifo.NewQueue(t.client, sqsfifo.QueueConfig{URL: t.url})
	if err != nil {
		return flagWords(err)
	}
	report, err := queue.Preflight(ctx)
	if closeErr := queue.Close(ctx); err == nil {
		err = closeErr
	}
	t.arn = cmp.Or(report.ARN, queueurl.ARN(t.url))
	var wrong *sqsfifo.QueueError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && report.FIFO && !report.ContentBasedDeduplication:
		// SQS treats a body hash from the producer like a hash computed by SQS (fact F-014
		// in sqstest/FACTS.md).
		t.deduplication = sqsfifo.DeduplicationExplicit
		t.note = "ContentBasedDeduplication is off: each message brings the SHA-256 of its body as deduplication ID"
		return nil
	case denied(err):
		t.note = "the queue's attributes may not be read (sqs:GetQueueAttributes); it is taken for a FIFO queue with ContentBasedDeduplication"
		return nil
	}
	return fmt.Errorf("--queue-url: %w", plainCause(err, t.url))
}

func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied")
}

// plainCause replaces the error of a nonexistent queue, or of a request without an answer,
// by one short line. It returns other errors unchanged.
func plainCause(err error, queueURL string) error {
	var missing *types.QueueDoesNotExist
	var api smithy.APIError
	if errors.As(err, &missing) || errors.As(err, &api) && strings.Contains(api.ErrorCode(), "NonExistentQueue") {
		return fmt.Errorf("there is no queue %s; check the name, the account and the region, or create it", queueURL)
	}
	var unsent *smithyhttp.RequestSendError
	if errors.As(err, &unsent) {
		return fmt.Errorf("no answer about queue %s: %w", queueURL, unsent.Err)
	}
	return err
}

// flagErrors collects the errors of wrong combinations of flags.
type flagErrors []error

// addIf adds an error to the list if the parameter `wrong` is true.
func (e *flagErrors) addIf(wrong bool, format string, args ...any) {
	if wrong {
		*e = append(*e, fmt.Errorf(format, args...))
	}
}

// flagWords replaces the names of configuration fields in an error by the names of flags.
func flagWords(err error) error {
	flags := map[string]string{
		"Config.QueueURL": "--queue-url", "Config.Source": "--source",
		"Config.Delivery.InFlight": "--in-flight", "Config.Delivery.RetryFor": "--retry-for",
		"Config.ID": "--run-id", "Config.InFlight": "--in-flight", "Config.MessagesPerSecond": "--rate", // these are fields of replay.Config
	}
	return inFlags(err, flags)
}

// inFlags replaces the configuration field in each [sqsfifo.InvalidError] in err by the
// field's flag in the map flags. Other errors, and errors about a field without a flag,
// stay unchanged.
func inFlags(err error, flags map[string]string) error {
	var errs []error
	for _, e := range split(err) {
		var invalid *sqsfifo.InvalidError
		if errors.As(e, &invalid) && flags[invalid.Field] != "" {
			e = fmt.Errorf("%s: %s", flags[invalid.Field], invalid.Rule)
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// split returns the errors that errors.Join combined into err, at every level.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, split(e)...)
		}
		return all
	}
	return []error{err}
}
