package roles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // as the API does
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
)

// services are the services that awsfake does not have: the key, secrets, parameters, the bus,
// queues, asynchronous invocations and the WebSocket connections. They inject no faults.
type services struct {
	key    *ecdsa.PrivateKey
	public []byte
	// call invokes a function.
	call    func(function string, payload []byte)
	sockets *connections

	mu         sync.Mutex
	secrets    map[string]string
	parameters map[string]string
	queues     map[string]*queue
	published  int
}

func newServices() (*services, error) {
	s := &services{secrets: map[string]string{}, parameters: map[string]string{}, queues: map[string]*queue{}, sockets: &connections{open: map[string]int{}}}
	var err error
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	s.public, err = x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	return s, err
}

// awsCall has the fields of all calls.
type awsCall struct {
	KeyID    string `json:"KeyId"`
	SecretID string `json:"SecretId"`
	QueueURL string `json:"QueueUrl"`
	Message  []byte
	message
	Name, Value string
	Entries     []message
}

// message is a message to a queue, or an entry of a batch.
type message struct {
	ID                     string `json:"Id"`
	MessageBody            string
	DelaySeconds           int
	MessageDeduplicationID string `json:"MessageDeduplicationId"`
}

func (m message) accepted(id string) map[string]string {
	return map[string]string{"Id": m.ID, "MessageId": id, "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(m.MessageBody)))} //nolint:gosec // as the API does
}

// answer answers a call in the AWS JSON protocol.
func (s *services) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var in awsCall
	target := r.Header.Get("X-Amz-Target")
	if err := json.Unmarshal(body, &in); err != nil {
		refuse(w, "ValidationException", target+": "+err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out any
	switch target {
	case "TrentService.GetPublicKey":
		out = map[string]any{"KeyId": in.KeyID, "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY", "PublicKey": s.public}
	case "TrentService.Sign":
		signature, err := ecdsa.SignASN1(rand.Reader, s.key, in.Message)
		if err != nil {
			refuse(w, "KMSInternalException", err.Error())
			return
		}
		out = map[string]any{"KeyId": in.KeyID, "Signature": signature}
	case "secretsmanager.GetSecretValue":
		value, ok := s.secrets[secretName(in.SecretID)]
		if !ok {
			refuse(w, "ResourceNotFoundException", "there is no secret "+in.SecretID)
			return
		}
		out = map[string]any{"SecretString": value}
	case "secretsmanager.DescribeSecret":
		if _, ok := s.secrets[secretName(in.SecretID)]; !ok {
			refuse(w, "ResourceNotFoundException", "there is no secret "+in.SecretID)
			return
		}
		out = map[string]any{"Name": in.SecretID}
	case "AmazonSSM.GetParameter":
		value, ok := s.parameters[in.Name]
		if !ok {
			refuse(w, "ParameterNotFound", "there is no parameter "+in.Name)
			return
		}
		out = map[string]any{"Parameter": map[string]string{"Name": in.Name, "Value": value}}
	case "AmazonSSM.PutParameter":
		if _, exists := s.parameters[in.Name]; exists {
			refuse(w, "ParameterAlreadyExists", in.Name)
			return
		}
		s.parameters[in.Name] = in.Value
		out = map[string]any{"Version": 1}
	case "AWSEvents.PutEvents":
		ids := make([]map[string]string, len(in.Entries))
		for i := range ids {
			ids[i] = map[string]string{"EventId": "1"}
		}
		s.published += len(ids)
		out = map[string]any{"FailedEntryCount": 0, "Entries": ids}
	case "AmazonSQS.SendMessage":
		out = in.accepted(s.queue(in.QueueURL).send(in.message))
	case "AmazonSQS.SendMessageBatch":
		sent := []map[string]string{}
		for _, m := range in.Entries {
			sent = append(sent, m.accepted(s.queue(in.QueueURL).send(m)))
		}
		out = map[string]any{"Successful": sent, "Failed": []any{}}
	default:
		refuse(w, "UnknownOperationException", "the home has no operation "+target)
		return
	}
	document(w, http.StatusOK, out)
}

// document writes an answer.
func document(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	text, err := json.Marshal(v)
	if err != nil { // texts, numbers and bytes
		panic(err)
	}
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, code, message string) {
	document(w, http.StatusBadRequest, map[string]string{"__type": code, "message": message})
}

// secretName returns the name of a secret given by name or ARN.
func secretName(id string) string {
	if _, name, isARN := strings.Cut(id, ":secret:"); isARN {
		return name[:len(name)-len("-AbCdEf")]
	}
	return id
}

// queue returns the queue of a URL. The caller holds the lock.
func (s *services) queue(address string) *queue {
	name := path.Base(address)
	if s.queues[name] == nil {
		s.queues[name] = newQueue()
	}
	return s.queues[name]
}

// invoke answers an asynchronous call of a function.
func (s *services) invoke(w http.ResponseWriter, r *http.Request, body []byte) {
	arn, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/"), "/invocations"))
	parts := strings.SplitN(arn, "-", 5) // arn:aws:lambda:us-east-1:ACCOUNT:function:sortie-STAGE-NAME
	if err != nil || r.Header.Get("X-Amz-Invocation-Type") != "Event" {
		refuse(w, "InvalidRequestContentException", "want an asynchronous call of a function")
		return
	}
	s.call(parts[len(parts)-1], body)
	w.WriteHeader(http.StatusAccepted)
}

// connections are the connections of the WebSocket API, with the number of messages sent to
// each.
type connections struct {
	mu   sync.Mutex
	open map[string]int
}

func (c *connections) connect(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[id] = 0
}

// got returns the number of messages sent to a connection, and whether the connection is open.
func (c *connections) got(id string) (messages int, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	messages, open = c.open[id]
	return messages, open
}

// ServeHTTP serves the management API of the connections.
func (c *connections) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := path.Base(r.URL.Path)
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[id]; !ok {
		w.Header().Set("X-Amzn-Errortype", "GoneException")
		w.WriteHeader(http.StatusGone)
		return
	}
	switch r.Method {
	case http.MethodPost:
		c.open[id]++
	case http.MethodDelete:
		delete(c.open, id)
		w.WriteHeader(http.StatusNoContent)
	}
}
