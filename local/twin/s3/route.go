package s3

import (
	"maps"
	"net/http"
	"slices"

	"github.com/versity/versitygw/s3err"
)

// action groups operations by the accounts that may perform them.
type action int

// actionOfWorkers is the set of operations that R2's "Object Read & Write" token permits for
// one bucket. Only the owner may perform all others.
const actionOfWorkers action = 1

// operation is an operation of the API.
type operation struct {
	action action
	// streams means that the operation reads the body while it arrives. Otherwise the signature
	// of the body is verified before the operation.
	streams bool
	do      func(*request) (answer, error)
}

// unsupported are the query parameters of operations that the store does not have: bucket
// settings, versions, tags, locks and ACLs.
var unsupported = []string{
	"accelerate", "acl", "analytics", "attributes", "cors", "encryption", "intelligent-tiering", "inventory", "legal-hold",
	"lifecycle", "logging", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus",
	"publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging", "torrent", "versioning",
	"versions", "website",
}

// parameter reports whether the query has a parameter.
func (r *request) parameter(name string) bool { return r.Request().URI().QueryArgs().Has(name) }

// choose returns the operation that the request names.
func (f *front) choose(r *request) (operation, error) {
	var byMethod map[string]operation
	level := s3err.ResourceTypeService
	switch {
	case slices.ContainsFunc(unsupported, r.parameter):
		return operation{do: notImplemented}, nil
	case r.bucket == "":
		byMethod = map[string]operation{http.MethodGet: {do: f.listBuckets}}
	case r.key == "":
		byMethod, level = f.ofBucket(r), s3err.ResourceTypeBucket
	case r.parameter("uploadId"):
		byMethod, level = f.ofUpload(r), s3err.ResourceTypeUpload
	case r.parameter("partNumber") && r.Method() == http.MethodPut:
		return operation{}, s3err.GetInvalidArgumentErr(s3err.InvalidArgMissingUploadId, "partNumber")
	default:
		byMethod, level = f.ofObject(r), s3err.ResourceTypeObject
	}
	if chosen, ok := byMethod[r.Method()]; ok {
		return chosen, nil
	}
	return operation{}, s3err.GetMethodNotAllowedErr(r.Method(), level, slices.Sorted(maps.Keys(byMethod)))
}

func notImplemented(*request) (answer, error) {
	return answer{}, s3err.GetAPIError(s3err.ErrNotImplemented)
}

func (f *front) ofBucket(r *request) map[string]operation {
	get := operation{action: actionOfWorkers, do: f.listObjects}
	switch {
	case r.parameter("location"):
		get = operation{do: f.location}
	case r.parameter("uploads"):
		get.do = f.listUploads
	case r.Query("list-type") == "2":
		get.do = f.listObjectsV2
	}
	all := map[string]operation{
		http.MethodHead: {action: actionOfWorkers, do: f.headBucket}, http.MethodGet: get,
		http.MethodPut: {do: notImplemented}, http.MethodDelete: {do: notImplemented},
	}
	if r.parameter("delete") {
		all[http.MethodPost] = operation{action: actionOfWorkers, do: f.deleteObjects}
	}
	return all
}

func (f *front) ofUpload(r *request) map[string]operation {
	all := map[string]operation{
		http.MethodGet:    {action: actionOfWorkers, do: f.listParts},
		http.MethodPost:   {action: actionOfWorkers, do: f.completeUpload},
		http.MethodDelete: {action: actionOfWorkers, do: f.abortUpload},
	}
	switch {
	case !r.parameter("partNumber"):
	case r.Get(copySource) != "":
		all[http.MethodPut] = operation{action: actionOfWorkers, do: f.copyPart}
	default:
		all[http.MethodPut] = operation{action: actionOfWorkers, streams: true, do: f.putPart}
	}
	return all
}

func (f *front) ofObject(r *request) map[string]operation {
	all := map[string]operation{
		http.MethodHead: {action: actionOfWorkers, do: f.headObject}, http.MethodGet: {action: actionOfWorkers, do: f.getObject},
		http.MethodPut: {action: actionOfWorkers, streams: true, do: f.putObject}, http.MethodDelete: {action: actionOfWorkers, do: f.deleteObject},
	}
	if r.Get(copySource) != "" {
		all[http.MethodPut] = operation{action: actionOfWorkers, do: f.copyObject}
	}
	if r.parameter("uploads") {
		all[http.MethodPost] = operation{action: actionOfWorkers, do: f.createUpload}
	}
	return all
}
