import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

class NTXent(nn.Module):
    def __init__(self, temperature=0.5):
        super().__init__()
        self.temperature = temperature
    def forward(self, zi, zj):
        batch_size = zi.shape[0]
        z = F.normalize(torch.cat([zi, zj], dim=0), p=2, dim=1)
        sim = torch.mm(z, z.T) / self.temperature
        mask = ~torch.eye(2 * batch_size, dtype=torch.bool, device=z.device)
        pos = torch.cat([torch.diag(sim, batch_size), torch.diag(sim, -batch_size)], dim=0)
        neg = sim.masked_fill(~mask, -1e9)
        loss = -pos + torch.logsumexp(neg, dim=1)
        return loss.mean()

def info_nce_loss(features, n_views, batch_size, temperature):
    labels = torch.cat([torch.arange(batch_size) for i in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    labels = torch.zeros(logits.shape[0], dtype=torch.long)
    logits = logits / temperature
    return logits, labels

class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin
    def forward(self, output1, output2, label):
        euclidean_distance = F.pairwise_distance(output1, output2, keepdim = True)
        loss_contrastive = torch.mean((1-label) * torch.pow(euclidean_distance, 2) +
                                      (label) * torch.pow(torch.clamp(self.margin - euclidean_distance, min=0.0), 2))
        return loss_contrastive

def batch_hard(labels, embeddings, margin):
    dot_product = torch.matmul(embeddings, embeddings.t())
    square_norm = torch.diag(dot_product)
    distances = square_norm.unsqueeze(0) - 2.0 * dot_product + square_norm.unsqueeze(1)
    distances[distances < 0] = 0
    mask = distances.eq(0).float()
    distances = distances + mask * 1e-16
    distances = (1.0 - mask) * torch.sqrt(distances)
    eq = labels.unsqueeze(0) == labels.unsqueeze(1)
    indices_not_equal = ~torch.eye(labels.size(0), device=labels.device).bool()
    mask_ap = (eq & indices_not_equal).float()
    hardest_positive_dist, _ = (mask_ap * distances).max(dim=1, keepdim=True)
    max_anchor_negative_dist, _ = distances.max(dim=1, keepdim=True)
    anchor_negative_dist = distances + max_anchor_negative_dist * (eq).float()
    hardest_negative_dist, _ = anchor_negative_dist.min(dim=1, keepdim=True)
    tl = hardest_positive_dist - hardest_negative_dist + margin
    tl[tl < 0] = 0
    return tl.mean()

class MoCo(nn.Module):
    def __init__(self, base, dim=4, K=8, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = base(), base()
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", torch.linspace(-1, 1, dim * K).reshape(dim, K))
        self.queue = nn.functional.normalize(self.queue, dim=0)
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)
    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr : ptr + batch_size] = keys.T
        ptr = (ptr + batch_size) % self.K
        self.queue_ptr[0] = ptr
    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = nn.functional.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        return logits, labels, k

def main(fill, compiled):
    rng = np.random.default_rng(0)
    f = lambda *s: torch.tensor(rng.normal(size=s), dtype=torch.float32)
    net = fill(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, 4)))
    criterion, nt, con = nn.CrossEntropyLoss(), NTXent(), ContrastiveLoss()
    triplet = nn.TripletMarginLoss(margin=1.0, p=2)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2, weight_decay=1e-4)
    def step(a, b, c, label):
        za, zb, zc = net(a), net(b), net(c)
        logits, labels = info_nce_loss(torch.cat([za, zb]), 2, 4, 0.07)
        parts = [criterion(logits, labels), nt(za, zb), con(za, zb, label[:, None]), triplet(za, zb, zc), batch_hard(label, za, 0.2)]
        loss = sum(parts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return parts
    step = compiled(step)
    out = []
    for _ in range(3):
        out += [p.item() for p in step(f(4, 5), f(4, 5), f(4, 5), torch.tensor(rng.integers(0, 2, 4)).float())]
    moco = MoCo(lambda: fill(nn.Linear(5, 4)))
    opt = torch.optim.SGD(moco.parameters(), 0.05, momentum=0.9)
    def mstep(a, b):
        output, target, k = moco(a, b)
        loss = criterion(output, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss, k
    mstep = compiled(mstep)
    for _ in range(3):
        loss, k = mstep(f(4, 5), f(4, 5))
        moco._dequeue_and_enqueue(k)
        out += [loss.item(), moco.queue_ptr.item()]
    return out
