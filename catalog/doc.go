// Package catalog makes datasets from the records of a data catalogue, and knows which
// datasets a catalogue has.
//
// Problem: the KFM key specification v10.3.1 says that dataset_id is the identifier of the
// dataset's STAC or DCAT record. An identifier that somebody types by hand gives a valid
// key of a dataset that does not exist.
//
// Guarantee: [Read] takes every component of the key from the record, or from a [Choice]
// where records have none. [Static] reads a static STAC catalogue once, and answers
// sqsfifo.Config.Catalog without a request.
//
// Limits: the package reads the members that a key needs, and does not validate records.
// The module github.com/planetlabs/go-stac does, and has dependencies that this module's
// users would carry.
package catalog
