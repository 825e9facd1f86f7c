// Package sqldb is what the packages over database/sql share: the text form of
// PostgreSQL arrays, the settings on which a commit's durability depends, and the
// migration of a schema. It imports no driver, and knows neither keys nor messages. Its
// errors do not name a package: the caller adds its name.
package sqldb
