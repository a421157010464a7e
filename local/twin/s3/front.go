package s3

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	panics "github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

const (
	// maxConnections limits the concurrent requests.
	maxConnections = 4096
	// maxHeaders limits the headers of a request, in bytes.
	maxHeaders = 8 << 10
)

// front serves the S3 API of a store. Signatures, checksums and errors come from versitygw. Its
// own server would link clients of brokers, directories and metrics.
type front struct {
	*store
	accounts accounts
}

// newApp returns the HTTP server of a store.
func newApp(s *store, a accounts) *fiber.App {
	f := &front{s, a}
	app := fiber.New(fiber.Config{
		StreamRequestBody: true, Concurrency: maxConnections, ReadBufferSize: maxHeaders, ErrorHandler: f.failed,
	})
	app.Use(panics.New(panics.Config{EnableStackTrace: true, StackTraceHandler: func(_ fiber.Ctx, cause any) {
		s.log.Error("the object store failed", "panic", cause)
	}}))
	app.Use(f.serve)
	return app
}

// request is an account's request for a bucket, or for an object in it.
type request struct {
	fiber.Ctx
	bucket, key string
	by          identity
	// body is the body. whole is the complete body if the operation does not stream it.
	body  io.Reader
	whole []byte
}

// answer is the response to a successful operation.
type answer struct {
	status  int // 0 is 200
	headers map[string]*string
	// document is marshalled as XML; nil without a body.
	document any
}

// serve answers a request.
func (f *front) serve(ctx fiber.Ctx) error {
	defer drain(ctx)
	utils.EnsureRequestIDs(ctx)
	answered, err := f.operate(ctx)
	if err != nil {
		return f.refuse(ctx, err)
	}
	ctx.Response().Header.DisableNormalizing()
	for name, value := range answered.headers {
		if value != nil && *value != "" {
			ctx.Response().Header.Add(name, *value)
		}
	}
	if answered.status != 0 {
		ctx.Status(answered.status)
	}
	if answered.document == nil {
		return nil
	}
	text, err := xml.Marshal(answered.document)
	if err != nil {
		return f.refuse(ctx, err)
	}
	ctx.Response().Header.SetContentType(fiber.MIMEApplicationXML)
	return ctx.Send(append([]byte(xml.Header), text...))
}

// operate checks a request and performs its operation.
func (f *front) operate(ctx fiber.Ctx) (answer, error) {
	path, err := url.PathUnescape(string(ctx.Request().URI().PathOriginal()))
	if err != nil {
		return answer{}, s3err.GetAPIError(s3err.ErrInvalidURI)
	}
	ctx.Path(path) // versitygw verifies the signature of the escaped path
	r := &request{Ctx: ctx}
	r.bucket, r.key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if r.key != "" && !utils.IsObjectNameValid(r.key) {
		return answer{}, s3err.GetAPIError(s3err.ErrBadRequest)
	}
	o, err := f.choose(r)
	if err != nil {
		return answer{}, err
	}
	if err := f.authenticate(r, o.streams); err != nil {
		return answer{}, err
	}
	if r.bucket != "" {
		if err := f.admit(r, o.action); err != nil {
			return answer{}, err
		}
	}
	return o.do(r)
}

// admit returns an error if the bucket does not exist, or if the account may not perform the
// action in it.
func (f *front) admit(r *request, a action) error {
	if err := f.has(r.bucket); err != nil {
		return err
	}
	if expected := r.Get("X-Amz-Expected-Bucket-Owner"); expected != "" && expected != f.owner {
		return s3err.GetAPIError(s3err.ErrAccessDenied)
	}
	return f.allow(r.by, a, r.bucket)
}

// allow returns an error if an account may not perform an action in a bucket.
func (f *front) allow(by identity, a action, bucket string) error {
	if by.owner || a == actionOfWorkers && bucket == f.uploads {
		return nil
	}
	return s3err.GetAPIError(s3err.ErrAccessDenied)
}

// refuse answers with an error of the API. It logs any other error and answers InternalError.
func (f *front) refuse(ctx fiber.Ctx, err error) error {
	refused, ok := errors.AsType[s3err.S3Error](f.named(err))
	if !ok {
		refused = s3err.GetAPIError(s3err.ErrInternalError)
	}
	if method, ok := errors.AsType[s3err.MethodNotAllowedError](refused); ok && len(method.AllowedMethods) > 0 {
		ctx.Set("Allow", method.AllowedMethodsString())
	}
	requestID, hostID := utils.EnsureRequestIDs(ctx)
	ctx.Response().Header.SetContentType(fiber.MIMEApplicationXML)
	return ctx.Status(refused.StatusCode()).Send(refused.XMLBody(requestID, hostID))
}

// failed answers malformed HTTP requests, and requests whose handler panicked.
func (f *front) failed(ctx fiber.Ctx, err error) error {
	cause, ok := errors.AsType[*fiber.Error](err)
	switch {
	case ok && errors.Is(cause, fiber.ErrRequestHeaderFieldsTooLarge):
		err = s3err.GetRequestHeaderSectionTooLargeErr(maxHeaders)
	case ok && strings.Contains(cause.Message, "cannot parse Content-Length"):
		ctx.Status(http.StatusBadRequest)
		return nil
	case ok && strings.Contains(cause.Message, "error when reading request headers"):
		err = s3err.GetAPIError(s3err.ErrCannotParseHTTPRequest)
	}
	return f.refuse(ctx, err)
}
