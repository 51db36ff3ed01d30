#!/bin/sh
# Creates the certificates of the tests: `sh make.sh`, with OpenSSL 3. They are checked in, because a new machine may not
# have OpenSSL, and are valid for a hundred years. The key protects nothing, and the keys of the CAs are deleted.
set -e
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

new_key() { # file
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}
sign() { # file, name, key, extension, first day, last day, by whom
  openssl req -new -key "$3" -subj "/CN=$2" -out "$work/request"
  : >"$work/index.txt"
  printf '%s\n' '[a]' "database=$work/index.txt" "new_certs_dir=$work" rand_serial=yes default_md=sha256 policy=p \
    x509_extensions=x '[p]' commonName=supplied '[x]' "$4" >"$work/ca.cnf"
  first=$5
  last=$6
  file=$1
  shift 6
  openssl ca -batch -notext -config "$work/ca.cnf" -name a -in "$work/request" -out "$file.crt" \
    -startdate "$first" -enddate "$last" "$@"
}
authority() { # file, name
  new_key "$work/$1.key"
  sign "$1" "$2" "$work/$1.key" basicConstraints=critical,CA:TRUE 20200101000000Z 21200101000000Z \
    -selfsign -keyfile "$work/$1.key"
}
certificate() { # file, alternative names, last day
  sign "$1" 'Baton test server' server.key "subjectAltName=$2" 20200101000000Z "$3" -cert ca.crt -keyfile "$work/ca.key"
}

authority ca 'Baton test CA'
authority other-ca 'Another test CA'
new_key server.key
certificate right DNS:localhost,IP:127.0.0.1 21200101000000Z
certificate expired DNS:localhost,IP:127.0.0.1 20200201000000Z
certificate other-host DNS:db.example 21200101000000Z
