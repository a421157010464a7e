package s3

import (
	"encoding/xml"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

const (
	// copySource is the header with the object to copy, as BUCKET/KEY.
	copySource = "X-Amz-Copy-Source"
	// defaultType is the content type of objects that were stored without one.
	defaultType = "binary/octet-stream"
)

// unsupportedHeaders are the headers of object features that neither the store nor R2 has.
var unsupportedHeaders = []string{
	"X-Amz-Tagging", "X-Amz-Object-Lock-Mode", "X-Amz-Object-Lock-Retain-Until-Date", "X-Amz-Object-Lock-Legal-Hold",
	"X-Amz-Website-Redirect-Location",
}

// metadata returns the headers of a request that are stored with an object.
func (r *request) metadata() (headers, error) {
	for _, name := range unsupportedHeaders {
		if r.Get(name) != "" {
			return headers{}, s3err.GetNotImplementedErr(name, "")
		}
	}
	own, err := utils.GetUserMetaData(&r.Request().Header)
	return headers{
		ContentType: r.Get(fiber.HeaderContentType, defaultType), ContentDisposition: r.Get(fiber.HeaderContentDisposition),
		ContentEncoding: r.Get(fiber.HeaderContentEncoding), ContentLanguage: r.Get(fiber.HeaderContentLanguage),
		CacheControl: r.Get(fiber.HeaderCacheControl), Expires: r.Get(fiber.HeaderExpires), Metadata: own,
	}, err
}

func (f *front) putObject(r *request) (answer, error) {
	stored, err := r.metadata()
	if err != nil {
		return answer{}, err
	}
	sent, err := r.content()
	if err != nil {
		return answer{}, err
	}
	match, noneMatch := utils.ParsePreconditionMatchHeaders(r.Ctx)
	put, err := f.PutObject(r.RequestCtx(), s3response.PutObjectInput{
		Bucket: &r.bucket, Key: &r.key, Body: sent.body, ContentLength: &sent.length, IfMatch: match, IfNoneMatch: noneMatch,
		ContentType: &stored.ContentType, ContentDisposition: &stored.ContentDisposition, ContentEncoding: &stored.ContentEncoding,
		ContentLanguage: &stored.ContentLanguage, CacheControl: &stored.CacheControl, Expires: &stored.Expires, Metadata: stored.Metadata,
	})
	return answer{headers: map[string]*string{"ETag": &put.ETag, "x-amz-object-size": utils.ConvertPtrToStringPtr(put.Size)}}, err
}

func (f *front) copyObject(r *request) (answer, error) {
	source, err := f.copied(r)
	if err != nil {
		return answer{}, err
	}
	stored, err := r.metadata()
	if err != nil {
		return answer{}, err
	}
	directive := types.MetadataDirective(r.Get("X-Amz-Metadata-Directive", string(types.MetadataDirectiveCopy)))
	if directive != types.MetadataDirectiveCopy && directive != types.MetadataDirectiveReplace {
		return answer{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgMetadataDirective, string(directive))
	}
	if err := utils.IsChecksumAlgorithmValid(types.ChecksumAlgorithm(r.Get("X-Amz-Checksum-Algorithm"))); err != nil {
		return answer{}, err
	}
	conditions := utils.ParsePreconditionHeaders(r.Ctx, utils.WithCopySource())
	made, err := f.CopyObject(r.RequestCtx(), s3response.CopyObjectInput{
		Bucket: &r.bucket, Key: &r.key, CopySource: &source, MetadataDirective: directive,
		CopySourceIfMatch: conditions.IfMatch, CopySourceIfNoneMatch: conditions.IfNoneMatch,
		CopySourceIfModifiedSince: conditions.IfModSince, CopySourceIfUnmodifiedSince: conditions.IfUnmodeSince,
		ContentType: &stored.ContentType, ContentDisposition: &stored.ContentDisposition, ContentEncoding: &stored.ContentEncoding,
		ContentLanguage: &stored.ContentLanguage, CacheControl: &stored.CacheControl, Expires: &stored.Expires, Metadata: stored.Metadata,
	})
	return answer{document: made.CopyObjectResult}, err
}

// copied returns the source of a copy request. It returns an error unless the account may read
// it.
func (f *front) copied(r *request) (string, error) {
	source := strings.TrimPrefix(r.Get(copySource), "/")
	if err := utils.ValidateCopySource(source); err != nil {
		return "", err
	}
	bucket, _, _, err := backend.ParseCopySource(source)
	if err != nil {
		return "", err
	}
	if err := f.has(bucket); err != nil {
		return "", err
	}
	if err := f.allow(r.by, actionOfWorkers, bucket); err != nil {
		return "", err
	}
	if len(r.whole) > 0 {
		return "", s3err.GetAPIError(s3err.ErrNonEmptyRequestBody)
	}
	return source, nil
}

func (f *front) getObject(r *request) (answer, error) {
	if err := r.checkReading(); err != nil {
		return answer{}, err
	}
	conditions := utils.ParsePreconditionHeaders(r.Ctx)
	got, err := f.GetObject(r.RequestCtx(), &awss3.GetObjectInput{
		Bucket: &r.bucket, Key: &r.key, Range: aws.String(r.Get(fiber.HeaderRange)), IfMatch: conditions.IfMatch, IfNoneMatch: conditions.IfNoneMatch,
		IfModifiedSince: conditions.IfModSince, IfUnmodifiedSince: conditions.IfUnmodeSince,
	})
	if err != nil {
		return answer{}, err
	}
	utils.StreamResponseBody(r.Ctx, got.Body, int(*got.ContentLength))
	return r.found(&awss3.HeadObjectOutput{
		ContentLength: got.ContentLength, ContentRange: got.ContentRange, ETag: got.ETag, LastModified: got.LastModified, Metadata: got.Metadata,
		ContentType: got.ContentType, ContentDisposition: got.ContentDisposition, ContentEncoding: got.ContentEncoding,
		ContentLanguage: got.ContentLanguage, CacheControl: got.CacheControl, ExpiresString: got.ExpiresString, StorageClass: got.StorageClass,
		AcceptRanges: got.AcceptRanges,
	}), nil
}

func (f *front) headObject(r *request) (answer, error) {
	if err := r.checkReading(); err != nil {
		return answer{}, err
	}
	conditions := utils.ParsePreconditionHeaders(r.Ctx)
	got, err := f.HeadObject(r.RequestCtx(), &awss3.HeadObjectInput{
		Bucket: &r.bucket, Key: &r.key, Range: aws.String(r.Get(fiber.HeaderRange)), IfMatch: conditions.IfMatch, IfNoneMatch: conditions.IfNoneMatch,
		IfModifiedSince: conditions.IfModSince, IfUnmodifiedSince: conditions.IfUnmodeSince,
	})
	if err != nil {
		return answer{}, err
	}
	return r.found(got), nil
}

// checkReading returns an error for invalid parameters of GET and HEAD.
func (r *request) checkReading() error {
	if r.parameter("partNumber") {
		if _, err := r.partNumber(); err != nil {
			return err
		}
		if r.Get(fiber.HeaderRange) != "" {
			return s3err.GetAPIError(s3err.ErrRangeAndPartNumber)
		}
	}
	const mode = "x-amz-checksum-mode"
	if value := r.Get(mode); value != "" && !strings.EqualFold(value, string(types.ChecksumModeEnabled)) {
		return s3err.GetInvalidChecksumHeaderErr(mode)
	}
	return nil
}

// found returns an answer with the headers of an object. Query parameters override some of
// them.
func (r *request) found(o *awss3.HeadObjectOutput) answer {
	utils.SetMetaHeaders(r.Ctx, o.Metadata)
	a := answer{headers: map[string]*string{
		"ETag": o.ETag, "Accept-Ranges": o.AcceptRanges, "Content-Range": o.ContentRange,
		"Content-Length": utils.ConvertPtrToStringPtr(o.ContentLength), "x-amz-storage-class": aws.String(string(o.StorageClass)),
		"Last-Modified": aws.String(o.LastModified.UTC().Format(http.TimeFormat)),
	}}
	for name, stored := range map[string]*string{
		"Content-Disposition": o.ContentDisposition, "Content-Encoding": o.ContentEncoding, "Content-Language": o.ContentLanguage,
		"Cache-Control": o.CacheControl, "Content-Type": o.ContentType, "Expires": o.ExpiresString,
	} {
		a.headers[name] = utils.ApplyOverride(stored, utils.GetQueryParam(r.Ctx, "response-"+strings.ToLower(name)))
	}
	if aws.ToString(o.ContentRange) != "" {
		a.status = http.StatusPartialContent
	}
	return a
}

func (f *front) deleteObject(r *request) (answer, error) {
	_, err := f.DeleteObject(r.RequestCtx(), &awss3.DeleteObjectInput{
		Bucket: &r.bucket, Key: &r.key, IfMatch: utils.GetStringPtr(strings.Trim(r.Get(fiber.HeaderIfMatch), `"`)),
	})
	return answer{status: http.StatusNoContent}, err
}

func (f *front) deleteObjects(r *request) (answer, error) {
	if err := r.digest(); err != nil {
		return answer{}, err
	}
	var asked s3response.DeleteObjects
	if err := xml.Unmarshal(r.whole, &asked); err != nil {
		return answer{}, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	done, err := f.DeleteObjects(r.RequestCtx(), &awss3.DeleteObjectsInput{Bucket: &r.bucket, Delete: &types.Delete{Objects: asked.Objects}})
	return answer{document: done}, err
}
