//go:build localstack

package tenantaws_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// credentialsOf returns those of a configuration, as a tenant has them in a secret.
func credentialsOf(t *testing.T, cfg aws.Config) sensor.Credentials {
	t.Helper()
	got, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sensor.Credentials{AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey}
}

// TestBucketOnLocalStack lists 1,001 objects in pages. LocalStack compares encoded keys with the key
// that a page begins after, so that the second page has no key that is encoded.
func TestBucketOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	of := sensor.Bucket{Name: "items-" + strings.ToLower(rand.Text()), Prefix: "in/", Endpoint: *cfg.BaseEndpoint, Region: cfg.Region}
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &of.Name}); err != nil {
		t.Fatal(err)
	}
	want := []string{"in/%2e", "in/a b+c", "in/aünï"}
	for i := range port.MaxObjects - 2 {
		want = append(want, fmt.Sprintf("in/n%04d", i))
	}
	for _, key := range append(want, "out") {
		if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &of.Name, Key: &key, Body: strings.NewReader("1")}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	wantObjects(t, of, credentialsOf(t, cfg), want)
	of.Name += "-of-another"
	_, err := loopback(t).Objects(t.Context(), of, credentialsOf(t, cfg), "")
	check(t, "no bucket", err, "NoSuchBucket")
}

// TestQueueOnLocalStack receives twelve messages, and deletes them.
func TestQueueOnLocalStack(t *testing.T) {
	t.Parallel()
	cfg := awstest.LocalStack(t)
	client := sqs.NewFromConfig(cfg)
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("items-" + rand.Text())})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]bool{}
	for i := range 12 {
		message, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: aws.String(fmt.Sprint(i))})
		if err != nil {
			t.Fatal(err)
		}
		sent[*message.MessageId] = true
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(*made.QueueUrl, "http://"), "/")
	of, by, c := sensor.Queue{URL: *cfg.BaseEndpoint + "/" + path}, credentialsOf(t, cfg), loopback(t)
	for calls := 0; len(sent) > 0; calls++ {
		got, err := c.Messages(t.Context(), of, by)
		if err != nil || len(got) > port.MaxMessages || calls > 100 {
			t.Fatalf("got %d messages, %v in call %d, %d not received", len(got), err, calls, len(sent))
		}
		for _, m := range got {
			if !sent[m.ID] || m.Body == "" || m.SentAt.IsZero() {
				t.Errorf("got %+v, want a message that was sent, once", m)
			}
			delete(sent, m.ID)
		}
		if err := c.DeleteMessages(t.Context(), of, by, got); err != nil && len(got) > 0 {
			t.Fatal(err)
		}
	}
	of.URL += "-of-another"
	_, err = c.Messages(t.Context(), of, by)
	check(t, "no queue", err, "NonExistentQueue")
}
