package awstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// LocalStack returns the configuration for the LocalStack at AWS_ENDPOINT_URL.
// The test fails if the variable is not set.
func LocalStack(t testing.TB) aws.Config {
	t.Helper()
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		t.Fatal("AWS_ENDPOINT_URL is not set: this test needs LocalStack, which \"make localstack\" starts")
	}
	return config(endpoint)
}

// DynamoDB returns the configuration for the DynamoDB Local at AWS_ENDPOINT_URL_DYNAMODB or, if
// that is not set, for LocalStack.
func DynamoDB(t testing.TB) aws.Config {
	t.Helper()
	if endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); endpoint != "" {
		return config(endpoint)
	}
	return LocalStack(t)
}

// Prepare calls Ask and fails the test on an error. It is for operations that the test needs
// and no adapter has.
func Prepare(t *testing.T, cfg aws.Config, operation string, input, output any) {
	t.Helper()
	if err := Ask(t.Context(), cfg, operation, input, output); err != nil {
		t.Fatal(err)
	}
}

// Ask calls an operation of the configured service, such as "AmazonSQS.CreateQueue" or "POST
// /2015-03-31/functions", with input as JSON. It decodes the response into output, which may be
// nil.
func Ask(ctx context.Context, cfg aws.Config, operation string, input, output any) error {
	body, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("cannot encode the request to LocalStack: %w", err)
	}
	method, path, rest := strings.Cut(operation, " ")
	if !rest {
		method, path = http.MethodPost, "/"
	}
	request, err := http.NewRequestWithContext(ctx, method, *cfg.BaseEndpoint+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot create the request to LocalStack: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	if !rest {
		request.Header.Set("Content-Type", "application/x-amz-json-1.0")
		request.Header.Set("X-Amz-Target", operation)
	}
	// LocalStack requires a signature and does not verify it.
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+cfg.Region+"/"+service(operation)+"/aws4_request, SignedHeaders=host, Signature=none")
	client := cfg.HTTPClient
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot reach LocalStack: %w", err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return fmt.Errorf("cannot read the response of LocalStack: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s: got %s: %s", operation, answer.Status, text)
	}
	if output == nil {
		return nil
	}
	if err := json.Unmarshal(text, output); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

// service returns the name of the operation's service for the signature of a request.
func service(operation string) string {
	name, _, _ := strings.Cut(operation, ".")
	switch name {
	case "AmazonSQS":
		return "sqs"
	case "DynamoDB_20120810":
		return "dynamodb"
	case "DynamoDBStreams_20120810":
		return "dynamodbstreams"
	case "AWSEvents":
		return "events"
	case "AWSStepFunctions":
		return "states"
	case "secretsmanager":
		return "secretsmanager"
	case "TrentService":
		return "kms"
	case "Logs_20140328":
		return "logs"
	}
	return "lambda"
}
