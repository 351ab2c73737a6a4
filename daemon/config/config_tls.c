/* TLS in the configuration: rules of the services that use it, and its files. */
#include <string.h>

#include "daemon/config/config_int.h"
#include "tls/tls.h"

static bool
has_psk(const struct config *cfg)
{
	return cfg->tls.psk[0] != '\0';
}

static void
check_names(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const unsigned line = config_line(src, "peer_names");
	const char *kind = config_kind_words[svc->kind];
	bool psk = has_psk(b->cfg), one_psk = false;
	char entry[TLS_NAMES_MAX];

	if (svc->peer_names[0] == '\0' && (svc->kind == CONFIG_EGRESS || svc->to_word == CONFIG_TO_ORIGINAL || psk))
		config_error(b, config_line(src, "secure"), "%s.secure needs %s.peer_names%s", kind, kind,
		    psk ? " with \"psk:NAME\"" : "");
	for (const char *p = svc->peer_names; *p != '\0';) {
		size_t len = strcspn(p, "\n");

		memcpy(entry, p, len);
		entry[len] = '\0';
		const char *why = tls_name_error(entry, psk);
		if (why != NULL)
			config_error(b, line, "%s.peer_names: \"%s\" %s", kind, entry, why);
		one_psk = one_psk || strncmp(entry, "psk:", 4) == 0;
		p += len + (p[len] != '\0');
	}
	if (psk && svc->kind == CONFIG_INGRESS && svc->peer_names[0] != '\0' && !one_psk)
		config_error(b, line, "%s.peer_names needs \"psk:NAME\": the PSK of the peer", kind);
}

/* A device whose links are in TLS, or protected. */
static bool
has_protected_links(const struct config_build *b)
{
	const struct config *cfg = b->cfg;

	for (unsigned i = 0; i < cfg->device_cnt; i++)
		if (cfg->devices[i].type == CONFIG_DEVICE_SIW ? cfg->devices[i].siw.transport == SIW_TCP
		                                              : cfg->devices[i].verbs.protection != RNIC_PROTECTED_NONE)
			return true;
	return config_member(b->files[0].root, "devices") == NULL; /* soft iWARP on TCP is the default */
}

static void
check_secure(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const unsigned line = config_line(src, "secure");
	const char *kind = config_kind_words[svc->kind];
	const bool required = svc->secure == CONFIG_SECURE_REQUIRED;
	static const char *const names[] = { "peer_names", "tls_name" };

	if (svc->secure == CONFIG_SECURE_OFF) {
		for (unsigned i = 0; i < 2; i++)
			if ((i == 0 ? svc->peer_names : svc->tls_name)[0] != '\0')
				config_warning(b, config_line(src, names[i]),
				    "%s.%s has no effect: %s.secure is \"off\"", kind, names[i], kind);
		return;
	}
	if (!tls_is_built())
		config_error(b, line, "%s.secure needs OpenSSL, which this smcrd was built without", kind);
	else if (b->cfg->tls.cert[0] == '\0' && !has_psk(b->cfg))
		config_error(b, line, "%s.secure needs tls.cert, tls.key and tls.ca, or tls.name and tls.psk", kind);
	if (svc->peer != SMCR_PEER_SMCRD)
		config_error(b, line, "%s.secure needs %s.peer = \"smcrd\": no other peer has TLS", kind, kind);
	if (svc->secure == CONFIG_SECURE_ACCEPT && svc->kind == CONFIG_INGRESS)
		config_error(b, line, "ingress.secure cannot be \"accept\": an ingress speaks TLS or does not");
	else if (svc->secure == CONFIG_SECURE_ACCEPT)
		config_warning(b, line,
		    "egress.secure is \"accept\": peers in clear are served as well; set \"required\" when tls_clear of "
		    "smcrctl stats stands still");
	if (required && !has_protected_links(b))
		(svc->fallback == CONFIG_FALLBACK_REFUSE ? config_error : config_warning)(b, line,
		    "%s.secure \"required\" has links on a device with type = \"siw\" and transport = \"tcp\", or one that is "
		    "protected, alone: without one, "
		    "data goes by TCP in TLS",
		    kind);
	check_names(b, svc, src);
}

void
config_check_tls(struct config_build *b)
{
	const config_setting_t *src = config_member(b->files[0].root, "tls");
	const struct config *cfg = b->cfg;
	const bool cert = cfg->tls.cert[0] != '\0';

	if (cert != (cfg->tls.key[0] != '\0') || cert != (cfg->tls.ca[0] != '\0') || (!cert && cfg->tls.crl[0] != '\0'))
		config_error(b, config_line(src, ""), "tls.cert, tls.key and tls.ca belong together");
	if (cert && has_psk(cfg))
		config_error(b, config_line(src, "psk"), "tls.psk and tls.cert exclude each other");
	if (has_psk(cfg) != (cfg->tls.name[0] != '\0'))
		config_error(b, config_line(src, ""), "tls.psk and tls.name belong together");
	if (has_psk(cfg) && (cfg->tls.suites & TLS_AES_256) != 0)
		config_error(b, config_line(src, "suites"),
		    "tls.suites cannot have TLS_AES_256_GCM_SHA384 with tls.psk: a PSK is for suites with SHA-256");
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		check_secure(b, &cfg->services[i], b->service_src[i]);
}

static void
config_tls_tell(void *arg, bool warning, const char *setting, const char *text)
{
	struct config_build *b = arg;
	const unsigned line = config_line(config_member(b->files[0].root, "tls"), setting);

	(warning ? config_warning : config_error)(b, line, "tls.%s %s", setting, text);
}

static struct tls_files
files_of(const struct config_tls *tls)
{
	return (struct tls_files){ tls->cert, tls->key, tls->ca, tls->crl, tls->name, tls->psk, tls->resume_ms / 1000,
		tls->suites };
}

unsigned
config_tls_uses(const struct config *cfg)
{
	unsigned uses = 0;

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		if (cfg->services[i].secure != CONFIG_SECURE_OFF)
			uses |= cfg->services[i].kind == CONFIG_INGRESS ? TLS_AS_CLIENT : TLS_AS_SERVER;
	return uses;
}

void
config_load_tls(struct config_build *b)
{
	const struct tls_files files = files_of(&b->cfg->tls);
	const unsigned uses = config_tls_uses(b->cfg);

	if (uses != 0)
		b->cfg->tls_ctx = tls_ctx_load(&files, uses, config_tls_tell, b);
}

static void
config_tls_print(void *arg, bool warning, const char *setting, const char *text)
{
	if (!warning)
		fprintf(arg, "tls.%s %s\n", setting, text);
}

struct tls_ctx *
config_tls_read(const struct config_tls *tls, unsigned uses, FILE *err)
{
	const struct tls_files files = files_of(tls);

	return tls_ctx_load(&files, uses, config_tls_print, err);
}

void
config_tls_look(const struct config_tls *tls, struct tls_stamp *out)
{
	const struct tls_files files = files_of(tls);

	tls_files_look(&files, out);
}
